"""Ports for the servers of a test."""

import random
import socket

# Below those that the system gives to connections: another program's connection takes none between
# the choice and the server's start.
PORTS = range(12_000, 32_000)


def free_ports(count):
    """Ports that no process listens on, in rising order."""
    listeners = []
    while len(listeners) < count:
        listener = socket.socket()
        try:
            listener.bind(("127.0.0.1", random.SystemRandom().choice(PORTS)))
        except OSError:
            listener.close()
        else:
            listeners.append(listener)
    ports = sorted(listener.getsockname()[1] for listener in listeners)
    for listener in listeners:
        listener.close()
    return ports


def free_port():
    """A port that no process listens on."""
    return free_ports(1)[0]

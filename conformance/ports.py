"""Ports for the servers of a test."""

import socket


def free_ports(count):
    """Ports that no process listens on, in rising order."""
    listeners = [socket.socket() for _ in range(count)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
    ports = sorted(listener.getsockname()[1] for listener in listeners)
    for listener in listeners:
        listener.close()
    return ports


def free_port():
    """A port that no process listens on."""
    return free_ports(1)[0]

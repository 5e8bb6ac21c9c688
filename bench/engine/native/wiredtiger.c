/* The few calls of WiredTiger that the benchmark needs, as plain functions: WiredTiger's own interface
 * is structures of function pointers with variable arguments, which C reads best from its header. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wiredtiger.h>

int frond_wt_open(const char *home, const char *config, void **connection) {
    return wiredtiger_open(home, NULL, config, (WT_CONNECTION **)connection);
}

int frond_wt_close(void *connection) {
    WT_CONNECTION *c = connection;
    return c->close(c, NULL);
}

int frond_wt_session(void *connection, void **session) {
    WT_CONNECTION *c = connection;
    return c->open_session(c, NULL, "isolation=snapshot", (WT_SESSION **)session);
}

int frond_wt_session_close(void *session) {
    WT_SESSION *s = session;
    return s->close(s, NULL);
}

int frond_wt_create(void *session, const char *uri, const char *config) {
    WT_SESSION *s = session;
    return s->create(s, uri, config);
}

int frond_wt_cursor(void *session, const char *uri, const char *config, void **cursor) {
    WT_SESSION *s = session;
    return s->open_cursor(s, uri, NULL, config, (WT_CURSOR **)cursor);
}

int frond_wt_cursor_close(void *cursor) {
    WT_CURSOR *c = cursor;
    return c->close(c);
}

int frond_wt_begin(void *session) {
    WT_SESSION *s = session;
    return s->begin_transaction(s, NULL);
}

int frond_wt_commit(void *session) {
    WT_SESSION *s = session;
    return s->commit_transaction(s, NULL);
}

int frond_wt_rollback(void *session) {
    WT_SESSION *s = session;
    return s->rollback_transaction(s, NULL);
}

int frond_wt_flush_log(void *session) {
    WT_SESSION *s = session;
    return s->log_flush(s, "sync=on");
}

int frond_wt_checkpoint(void *session) {
    WT_SESSION *s = session;
    return s->checkpoint(s, NULL);
}

int frond_wt_insert(void *cursor, const void *key, size_t key_size, const void *value, size_t size) {
    WT_CURSOR *c = cursor;
    WT_ITEM k = {.data = key, .size = key_size}, v = {.data = value, .size = size};
    c->set_key(c, &k);
    c->set_value(c, &v);
    return c->insert(c);
}

/* Finds `key` itself. */
int frond_wt_search(void *cursor, const void *key, size_t key_size) {
    WT_CURSOR *c = cursor;
    WT_ITEM k = {.data = key, .size = key_size};
    c->set_key(c, &k);
    return c->search(c);
}

/* Finds the first key that is not less than `key`. */
int frond_wt_seek(void *cursor, const void *key, size_t key_size) {
    WT_CURSOR *c = cursor;
    WT_ITEM k = {.data = key, .size = key_size};
    int exact, error;
    c->set_key(c, &k);
    error = c->search_near(c, &exact);
    return error == 0 && exact < 0 ? c->next(c) : error;
}

int frond_wt_next(void *cursor) {
    WT_CURSOR *c = cursor;
    return c->next(c);
}

int frond_wt_reset(void *cursor) {
    WT_CURSOR *c = cursor;
    return c->reset(c);
}

int frond_wt_entry(void *cursor, const void **key, size_t *key_size, const void **value, size_t *size) {
    WT_CURSOR *c = cursor;
    WT_ITEM k, v;
    int error = c->get_key(c, &k);
    if (error == 0)
        error = c->get_value(c, &v);
    if (error == 0) {
        *key = k.data;
        *key_size = k.size;
        *value = v.data;
        *size = v.size;
    }
    return error;
}

const char *frond_wt_error(int error) {
    return wiredtiger_strerror(error);
}

int frond_wt_not_found(void) {
    return WT_NOTFOUND;
}

int frond_wt_rollback_error(void) {
    return WT_ROLLBACK;
}

const char *frond_wt_version(void) {
    return wiredtiger_version(NULL, NULL, NULL);
}

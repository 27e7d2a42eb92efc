import os


def app(environ, start_response):
    body = b'hello from wsgi, pid %d' % os.getpid()
    start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', str(len(body)))])
    return [body]

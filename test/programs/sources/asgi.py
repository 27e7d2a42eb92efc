import os


async def app(scope, receive, send):
    if scope['type'] == 'lifespan':
        while True:
            kind = (await receive())['type']
            await send({'type': kind + '.complete'})
            if kind == 'lifespan.shutdown':
                return
    body = b'hello from asgi, pid %d' % os.getpid()
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-length', b'%d' % len(body))]})
    await send({'type': 'http.response.body', 'body': body})

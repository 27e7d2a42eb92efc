import os

from aiohttp import web


async def hello(request):
    return web.Response(text=f'hello from aiohttp, pid {os.getpid()}')

app = web.Application()
app.add_routes([web.get('/', hello)])
web.run_app(app, port=int(os.environ['PORT']))

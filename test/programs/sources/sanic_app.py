import os

from sanic import Sanic, text

app = Sanic('gallery')


@app.get('/')
async def hello(request):
    return text(f'hello from sanic, pid {os.getpid()}')

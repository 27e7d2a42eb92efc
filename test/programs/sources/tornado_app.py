import asyncio
import os

import tornado.web


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.write(f'hello from tornado, pid {os.getpid()}')


async def main():
    tornado.web.Application([('/', Hello)]).listen(int(os.environ['PORT']))
    await asyncio.Event().wait()

asyncio.run(main())

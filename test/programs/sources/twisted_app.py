import os

from twisted.web.resource import Resource


class Hello(Resource):
    isLeaf = True

    def render_GET(self, request):
        return b'hello from twisted, pid %d\n' % os.getpid()

require 'webrick'

server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ENV.fetch('PORT'), AccessLog: [])
server.mount_proc('/') { |_request, response| response.body = "hello from webrick, pid #{Process.pid}" }
trap('TERM') { server.shutdown }
server.start

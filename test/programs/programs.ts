import path from 'node:path'
import type { TOOLS } from './tools.ts'
import type { Place } from '../apps/place.ts'
import type { Question } from '../apps/protocols.ts'

/** A program that is not Node's, and how it is run and asked. */
export type Program = {
  name: string,
  /** what runs or builds it */
  needs: keyof typeof TOOLS,
  /** the package of Python that it is about; default: what it needs */
  version?: string,
  /** of `sources`: files, or folders whose content is put there */
  files?: string[],
  /** commands, once these are there */
  build?: string[][],
  /** as it is typed behind `clusterdeck start --` */
  command: (place: Place) => string[],
  /** PORT aside, which is always set */
  env?: (place: Place) => Record<string, string>,
  /** of `clusterdeck start` */
  flags?: string[],
  /** ports, paths and, with a / at their end, folders of paths; default: the port that it is told */
  listens?: (place: Place) => string[],
  /** what every answer holds; none: it is no server */
  expects?: string,
  /** how, where that is not HTTP on the port */
  asks?: Partial<Question>
}

const NPM_INSTALL = [['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']]
const inFront = (script: string) => ['sh', '-c', script]
const address = ({ port }: { port: number }) => `127.0.0.1:${port}`
const JARS = ['mvn', '--quiet', '--batch-mode', 'dependency:copy-dependencies', '-DoutputDirectory=lib',
  `-Depoll=linux-${process.arch === 'arm64' ? 'aarch_64' : 'x86_64'}`]
// For the TXT record of gallery.test.
const DNS_QUERY = '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07gallery\x04test\x00\x00\x10\x00\x01'

/** It listens at a second place of its own accord. */
const GUNICORN: Omit<Program, 'name' | 'command'> = { needs: 'python', version: 'gunicorn', files: ['wsgi.py'],
  env: ({ state }) => ({ HOME: state }),
  listens: ({ port, state }) => [String(port), path.join(state, '.gunicorn/gunicorn.ctl')], expects: 'hello from wsgi' }

const NGINX: Omit<Program, 'name'> = { needs: 'nginx', files: ['nginx.conf'], build: [['mkdir', '-p', 'temp']],
  command: ({ folder, port, state }) =>
    inFront(
      `sed 's/\${PORT}/${port}/' nginx.conf > ${state}/$$.conf && exec nginx -p ${folder} -e stderr -c ${state}/$$.conf`
    ), expects: 'hello from nginx' }

/** On the wildcard addresses of both families, for UDP and TCP. */
const DNSMASQ: Omit<Program, 'name' | 'asks'> = { needs: 'dnsmasq',
  command: ({ port }) =>
    inFront(
      `exec dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --no-resolv --no-hosts --port=${port} --txt-record=gallery.test,"hello from dnsmasq, pid $$"`
    ), expects: 'hello from dnsmasq' }

export const PROGRAMS: Program[] = [{ name: 'bun-serve', needs: 'bun', files: ['bun-serve.ts'],
  command: () => ['bun', 'bun-serve.ts'], expects: 'hello from bun' }, { name: 'elysia', needs: 'bun',
  files: ['elysia'], build: NPM_INSTALL, command: () => ['bun', 'elysia.ts'], expects: 'hello from elysia' }, {
  name: 'deno-serve',
  needs: 'deno',
  files: ['deno-serve.ts'],
  command: () => ['deno', 'run', '--allow-net', '--allow-env', 'deno-serve.ts'],
  expects: 'hello from deno'
}, { name: 'hono', needs: 'deno', files: ['hono'], build: NPM_INSTALL,
  command: () => ['deno', 'run', '--allow-net', '--allow-env', 'hono.ts'], expects: 'hello from hono' }, {
  name: 'express-deno',
  needs: 'deno',
  files: ['express-deno'],
  build: NPM_INSTALL,
  command: () => ['deno', 'run', '--allow-all', 'express-deno.mjs'],
  expects: 'hello from express'
}, { name: 'uvicorn', needs: 'python', version: 'uvicorn', files: ['asgi.py'],
  command: ({ port }) => ['python', '-m', 'uvicorn', 'asgi:app', '--port', String(port)], expects: 'hello from asgi' },
  { name: 'uvicorn-workers', needs: 'python', version: 'uvicorn', files: ['fastapi_app.py'],
    command: ({ port }) => ['uvicorn', 'fastapi_app:app', '--port', String(port), '--workers', '2'],
    expects: 'hello from fastapi' }, { ...GUNICORN, name: 'gunicorn',
  command: (place) => ['gunicorn', '--workers', '2', '--bind', address(place), 'wsgi:app'] }, { ...GUNICORN,
  name: 'gunicorn-threads', command: (place) => ['gunicorn', '--threads', '8', '--bind', address(place), 'wsgi:app'] },
  { ...GUNICORN, name: 'gunicorn-unix',
    command: ({ socket }) => ['gunicorn', '--workers', '2', '--bind', `unix:${socket}`, 'wsgi:app'],
    listens: ({ socket, state }) => [socket, path.join(state, '.gunicorn/gunicorn.ctl')], asks: { over: 'socket' } }, {
  name: 'hypercorn',
  needs: 'python',
  version: 'hypercorn',
  files: ['asgi.py'],
  command: (place) => ['hypercorn', '--bind', address(place), 'asgi:app'],
  expects: 'hello from asgi'
}, { name: 'granian', needs: 'python', version: 'granian', files: ['asgi.py'],
  command: ({ port }) => ['granian', '--interface', 'asgi', '--port', String(port), 'asgi:app'],
  expects: 'hello from asgi' }, { name: 'waitress', needs: 'python', version: 'waitress', files: ['wsgi.py'],
  command: (place) => ['waitress-serve', `--listen=${address(place)}`, 'wsgi:app'], expects: 'hello from wsgi' }, {
  name: 'flask-run',
  needs: 'python',
  version: 'flask',
  files: ['flask_app.py'],
  command: ({ port }) => ['flask', '--app', 'flask_app', 'run', '--port', String(port)],
  expects: 'hello from flask'
}, { name: 'django-runserver', needs: 'python', version: 'django', files: ['manage.py'],
  command: ({ port }) => ['python', 'manage.py', 'runserver', String(port)], expects: 'hello from django' }, {
  name: 'aiohttp',
  needs: 'python',
  version: 'aiohttp',
  files: ['aiohttp_app.py'],
  command: () => ['python', 'aiohttp_app.py'],
  expects: 'hello from aiohttp'
}, { name: 'tornado', needs: 'python', version: 'tornado', files: ['tornado_app.py'],
  command: () => ['python', 'tornado_app.py'], expects: 'hello from tornado' }, { name: 'daphne', needs: 'python',
  version: 'daphne', files: ['asgi.py'], command: ({ port }) => ['daphne', '--port', String(port), 'asgi:app'],
  expects: 'hello from asgi' }, {
  name: 'twisted',
  needs: 'python',
  version: 'twisted',
  files: ['twisted_app.py'],
  // With --wsgi it does not end while a request is in a thread of its pool.
  command: (
    { port }
  ) => ['python', '-m', 'twisted', 'web', '--listen', `tcp:${port}:interface=127.0.0.1`, '--class',
    'twisted_app.Hello'],
  expects: 'hello from twisted'
}, {
  name: 'sanic-workers',
  needs: 'python',
  version: 'sanic',
  files: ['sanic_app.py'],
  // Its main process listens before it has any, and never ends if it is told to before the last one is there.
  flags: ['--ready-log', 'Worker ready'],
  command: ({ port }) => ['sanic', 'sanic_app:app', '--port', String(port), '--workers', '2'],
  env: ({ state }) => ({ TMPDIR: state }),
  listens: ({ port, state }) => [String(port), `${state}/`],
  expects: 'hello from sanic'
}, { name: 'go-http', needs: 'go', files: ['go-http'], build: [['go', 'build', '-o', 'server', '.']],
  command: () => ['./server'], expects: 'hello from go' }, { name: 'gin', needs: 'go', files: ['gin'],
  build: [['go', 'mod', 'tidy'], ['go', 'build', '-o', 'server', '.']], command: () => ['./server'],
  expects: 'hello from gin' }, { name: 'caddy', needs: 'caddy', files: ['Caddyfile'],
  command: () => ['caddy', 'run', '--config', 'Caddyfile', '--adapter', 'caddyfile'],
  env: ({ state }) => ({ XDG_DATA_HOME: state, XDG_CONFIG_HOME: state }), expects: 'hello from caddy' }, { ...NGINX,
  name: 'nginx' }, { ...NGINX, name: 'nginx-quit', flags: ['--stop-signal', 'SIGQUIT'] }, { name: 'puma', needs: 'puma',
  files: ['config.ru'], command: ({ port }) => ['ruby', '-S', 'puma', '--port', String(port), 'config.ru'],
  expects: 'hello from puma' }, { name: 'webrick', needs: 'webrick', files: ['webrick.rb'],
  command: () => ['ruby', 'webrick.rb'], expects: 'hello from webrick' }, { name: 'starman', needs: 'perl',
  files: ['app.psgi'], command: (place) => ['starman', '--listen', address(place), 'app.psgi'],
  expects: 'hello from starman' }, { name: 'php', needs: 'php', files: ['index.php'],
  command: (place) => ['php', '-S', address(place), 'index.php'], expects: 'hello from php' }, { name: 'java',
  needs: 'java', files: ['Server.java'], build: [['javac', 'Server.java']], command: () => ['java', 'Server'],
  expects: 'hello from java' }, { name: 'netty', needs: 'maven', files: ['netty'],
  build: [JARS, ['javac', '-cp', 'lib/*', 'NettyServer.java']],
  command: () => ['java', '-cp', 'lib/*:.', 'NettyServer'], expects: 'hello from netty' }, { name: 'grpc-java',
  needs: 'maven', files: ['grpc-java', '../../apps/programs/hello.proto'],
  build: [JARS, ['javac', '-cp', 'lib/*', 'GrpcServer.java'], ...NPM_INSTALL],
  command: () => ['java', '-cp', 'lib/*:.', 'GrpcServer'], expects: 'hello gallery', asks: { protocol: 'grpc' } }, {
  name: 'axum',
  needs: 'rust',
  files: ['axum'],
  build: [['cargo', 'build', '--release', '--quiet']],
  command: () => ['target/release/gallery'],
  expects: 'hello from axum'
}, { name: 'c', needs: 'c', files: ['server.c'],
  build: [['gcc', '-O2', '-Wno-unused-result', '-o', 'server', 'server.c']], command: () => ['./server'],
  expects: 'hello from c' }, { name: 'asio', needs: 'asio', files: ['asio.cpp'],
  build: [['g++', '-O2', '-std=c++20', '-o', 'server', 'asio.cpp']], command: () => ['./server'],
  expects: 'hello from asio' }, { name: 'httplib', needs: 'httplib', files: ['httplib.cpp'],
  build: [['g++', '-O1', '-o', 'server', 'httplib.cpp', '-lcpp-httplib']], command: () => ['./server'],
  expects: 'hello from httplib' }, { ...DNSMASQ, name: 'dnsmasq-udp', asks: { protocol: 'udp', send: DNS_QUERY } }, {
  ...DNSMASQ,
  name: 'dnsmasq-tcp',
  asks: { protocol: 'tcp', send: `\0\x1e${DNS_QUERY}` }
}, { name: 'npm-run', needs: 'node', files: ['npm-run'], command: () => ['npm', 'run', 'serve'],
  expects: 'hello from npm' }, { name: 'sh-and', needs: 'python', version: 'uvicorn', files: ['asgi.py'],
  command: ({ port }) => inFront(`echo migrated && uvicorn asgi:app --port ${port}`), expects: 'hello from asgi' }, {
  name: 'queue-consumer',
  needs: 'python',
  files: ['queue_consumer.py'],
  flags: ['--ready-signal', 'online'],
  command: () => ['python', 'queue_consumer.py']
}]

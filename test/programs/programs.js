import path from 'node:path'

/**
 * A program that is not Node's, and how it is run and asked.
 * @typedef {object} Program
 * @property {string} name
 * @property {keyof typeof import('./tools.js').TOOLS} needs what runs or builds it
 * @property {string} [version] the package that it is about; default: what it needs
 * @property {string[]} [files] of `sources`: files, or folders whose content is put there
 * @property {string[][]} [build] commands, once these are there
 * @property {(place: import('../apps/place.js').Place) => string[]} command as it is typed behind `clusterdeck start --`
 * @property {(place: import('../apps/place.js').Place) => Record<string, string>} [env] PORT aside, which is always set
 * @property {string[]} [flags] of `clusterdeck start`
 * @property {(place: import('../apps/place.js').Place) => string[]} [listens] ports and paths; default: the port that it is told
 * @property {string} [expects] what every answer holds; none: it is no server
 */

const NPM_INSTALL = [['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']]
const inFront = (/** @type {string} */ script) => ['sh', '-c', script]
const address = (/** @type {{ port: number }} */ { port }) => `127.0.0.1:${port}`

/** It listens at a second place of its own accord. @type {Omit<Program, 'name' | 'command'>} */
const GUNICORN = {
  needs: 'python',
  version: 'gunicorn',
  files: ['wsgi.py'],
  env: ({ state }) => ({ HOME: state }),
  listens: ({ port, state }) => [String(port), path.join(state, '.gunicorn/gunicorn.ctl')],
  expects: 'hello from wsgi'
}

/** @type {Omit<Program, 'name'>} */
const NGINX = {
  needs: 'nginx',
  files: ['nginx.conf'],
  build: [['mkdir', '-p', 'temp']],
  command: ({ folder, port, state }) => inFront(`sed 's/\${PORT}/${port}/' nginx.conf > ${state}/$$.conf && exec nginx -p ${folder} -e stderr -c ${state}/$$.conf`),
  expects: 'hello from nginx'
}

/** @type {Program[]} */
export const PROGRAMS = [
  { name: 'bun-serve', needs: 'bun', files: ['bun-serve.ts'], command: () => ['bun', 'bun-serve.ts'], expects: 'hello from bun' },
  { name: 'elysia', needs: 'bun', files: ['elysia'], build: NPM_INSTALL, command: () => ['bun', 'elysia.ts'], expects: 'hello from elysia' },
  { name: 'deno-serve', needs: 'deno', files: ['deno-serve.ts'], command: () => ['deno', 'run', '--allow-net', '--allow-env', 'deno-serve.ts'], expects: 'hello from deno' },
  {
    name: 'hono',
    needs: 'deno',
    files: ['hono'],
    build: NPM_INSTALL,
    command: () => ['deno', 'run', '--allow-net', '--allow-env', 'hono.ts'],
    expects: 'hello from hono'
  },
  {
    name: 'express-deno',
    needs: 'deno',
    files: ['express-deno'],
    build: NPM_INSTALL,
    command: () => ['deno', 'run', '--allow-all', 'express-deno.mjs'],
    expects: 'hello from express'
  },
  { name: 'uvicorn', needs: 'python', version: 'uvicorn', files: ['asgi.py'], command: ({ port }) => ['python', '-m', 'uvicorn', 'asgi:app', '--port', String(port)], expects: 'hello from asgi' },
  {
    name: 'uvicorn-workers',
    needs: 'python',
    version: 'uvicorn',
    files: ['fastapi_app.py'],
    command: ({ port }) => ['uvicorn', 'fastapi_app:app', '--port', String(port), '--workers', '2'],
    expects: 'hello from fastapi'
  },
  { ...GUNICORN, name: 'gunicorn', command: (place) => ['gunicorn', '--workers', '2', '--bind', address(place), 'wsgi:app'] },
  { ...GUNICORN, name: 'gunicorn-threads', command: (place) => ['gunicorn', '--threads', '8', '--bind', address(place), 'wsgi:app'] },
  { name: 'hypercorn', needs: 'python', version: 'hypercorn', files: ['asgi.py'], command: (place) => ['hypercorn', '--bind', address(place), 'asgi:app'], expects: 'hello from asgi' },
  { name: 'granian', needs: 'python', version: 'granian', files: ['asgi.py'], command: ({ port }) => ['granian', '--interface', 'asgi', '--port', String(port), 'asgi:app'], expects: 'hello from asgi' },
  { name: 'waitress', needs: 'python', version: 'waitress', files: ['wsgi.py'], command: (place) => ['waitress-serve', `--listen=${address(place)}`, 'wsgi:app'], expects: 'hello from wsgi' },
  { name: 'flask-run', needs: 'python', version: 'flask', files: ['flask_app.py'], command: ({ port }) => ['flask', '--app', 'flask_app', 'run', '--port', String(port)], expects: 'hello from flask' },
  { name: 'django-runserver', needs: 'python', version: 'django', files: ['manage.py'], command: ({ port }) => ['python', 'manage.py', 'runserver', String(port)], expects: 'hello from django' },
  { name: 'aiohttp', needs: 'python', version: 'aiohttp', files: ['aiohttp_app.py'], command: () => ['python', 'aiohttp_app.py'], expects: 'hello from aiohttp' },
  { name: 'tornado', needs: 'python', version: 'tornado', files: ['tornado_app.py'], command: () => ['python', 'tornado_app.py'], expects: 'hello from tornado' },
  { name: 'go-http', needs: 'go', files: ['go-http'], build: [['go', 'build', '-o', 'server', '.']], command: () => ['./server'], expects: 'hello from go' },
  { name: 'gin', needs: 'go', files: ['gin'], build: [['go', 'mod', 'tidy'], ['go', 'build', '-o', 'server', '.']], command: () => ['./server'], expects: 'hello from gin' },
  { name: 'caddy', needs: 'caddy', files: ['Caddyfile'], command: () => ['caddy', 'run', '--config', 'Caddyfile', '--adapter', 'caddyfile'], env: ({ state }) => ({ XDG_DATA_HOME: state, XDG_CONFIG_HOME: state }), expects: 'hello from caddy' },
  { ...NGINX, name: 'nginx' },
  { ...NGINX, name: 'nginx-quit', flags: ['--stop-signal', 'SIGQUIT'] },
  { name: 'puma', needs: 'ruby', files: ['config.ru'], command: ({ port }) => ['ruby', '-S', 'puma', '--port', String(port), 'config.ru'], expects: 'hello from puma' },
  { name: 'php', needs: 'php', files: ['index.php'], command: (place) => ['php', '-S', address(place), 'index.php'], expects: 'hello from php' },
  { name: 'java', needs: 'java', files: ['Server.java'], build: [['javac', 'Server.java']], command: () => ['java', 'Server'], expects: 'hello from java' },
  { name: 'axum', needs: 'rust', files: ['axum'], build: [['cargo', 'build', '--release', '--quiet']], command: () => ['target/release/gallery'], expects: 'hello from axum' },
  { name: 'c', needs: 'c', files: ['server.c'], build: [['gcc', '-O2', '-Wno-unused-result', '-o', 'server', 'server.c']], command: () => ['./server'], expects: 'hello from c' },
  { name: 'npm-run', needs: 'node', files: ['npm-run'], command: () => ['npm', 'run', 'serve'], expects: 'hello from npm' },
  { name: 'sh-and', needs: 'python', version: 'uvicorn', files: ['asgi.py'], command: ({ port }) => inFront(`echo migrated && uvicorn asgi:app --port ${port}`), expects: 'hello from asgi' },
  { name: 'queue-consumer', needs: 'python', files: ['queue_consumer.py'], flags: ['--ready-signal', 'online'], command: () => ['python', 'queue_consumer.py'] }
]

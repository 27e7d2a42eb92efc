import type { Program } from '../programs.ts'
import type { Place } from '../place.ts'

const FROM_A_FILE = { path: '/index.html', expects: 'hello from a file' }
const AT_THE_ROOT = { ...FROM_A_FILE, path: '/' }

/** What serves files, and what stands before other servers. */
export const FILES_AND_PROXIES: Program[] = [{ name: 'serve', packages: { serve: '14' }, files: ['public'],
  entry: 'node_modules/.bin/serve', args: ({ socket }) => ['--listen', `unix:${socket}`, 'public'],
  env: () => ({ NO_UPDATE_CHECK: '1' }), listens: ({ socket }) => [socket], asks: { ...AT_THE_ROOT, over: 'socket' } },
  {
    // Where somebody answers on its port it takes another one, and in version 14 --no-port-switching does not change
    // that.
    name: 'serve-on-a-port',
    packages: { serve: '14' },
    files: ['public'],
    entry: 'node_modules/.bin/serve',
    args: ({ port }) => ['--no-port-switching', '--listen', `tcp://127.0.0.1:${port}`, 'public'],
    env: () => ({ NO_UPDATE_CHECK: '1' }),
    cannotBeReplaced: true,
    asks: AT_THE_ROOT
  }, { name: 'http-server', packages: { 'http-server': '14' }, files: ['public'],
  entry: 'node_modules/.bin/http-server', args: ({ port }) => ['public', '-p', String(port)], asks: FROM_A_FILE }, {
  name: 'sirv',
  packages: { 'sirv-cli': '3' },
  files: ['public'],
  entry: 'node_modules/.bin/sirv',
  args: ({ port }) => ['public', '--port', String(port), '--quiet'],
  asks: FROM_A_FILE
}, { name: 'local-web-server', packages: { 'local-web-server': '5' }, files: ['public'], entry: 'node_modules/.bin/ws',
  args: ({ port }) => ['--directory', 'public', '--port', String(port)], asks: FROM_A_FILE }, { name: 'live-server',
  packages: { 'live-server': '1' }, files: ['public'], entry: 'node_modules/.bin/live-server',
  args: ({ port }) => ['public', `--port=${port}`, '--no-browser', '--quiet'], asks: FROM_A_FILE }, {
  name: 'vite-preview',
  packages: { vite: '6' },
  files: ['public'],
  entry: 'node_modules/.bin/vite',
  args: ({ port }) => ['preview', '--outDir', 'public', '--host', '127.0.0.1', '--port', String(port), '--strictPort'],
  asks: FROM_A_FILE
}, { name: 'node-static', packages: { 'node-static': '0.7' }, files: ['node-static.cjs', 'public'],
  entry: 'node-static.cjs', asks: FROM_A_FILE }, { name: 'serve-static',
  packages: { 'serve-static': '2', finalhandler: '2' }, files: ['serve-static.cjs', 'public'],
  entry: 'serve-static.cjs', asks: FROM_A_FILE }, { name: 'http-proxy', packages: { 'http-proxy': '1' },
  entry: 'http-proxy.cjs', env: upstream, asks: { expects: 'hello from upstream' } }, { name: 'http-proxy-middleware',
  packages: { 'http-proxy-middleware': '3', express: '5' }, entry: 'http-proxy-middleware.cjs', env: upstream,
  asks: { expects: 'hello from upstream' } }, { name: 'fastify-http-proxy',
  packages: { '@fastify/http-proxy': '11', fastify: '5' }, entry: 'fastify-http-proxy.mjs', env: upstream,
  asks: { expects: 'hello from upstream' } }, { name: 'express-http-proxy',
  packages: { 'express-http-proxy': '2', express: '5' }, entry: 'express-http-proxy.cjs', env: upstream,
  asks: { expects: 'hello from upstream' } }, { name: 'cors-anywhere', packages: { 'cors-anywhere': '0.4' },
  entry: 'cors-anywhere.cjs', asks: { path: ({ upstream }) => `/${upstream}`, expects: 'hello from upstream' } }]

function upstream ({ upstream }: Place) {
  return { UPSTREAM: upstream }
}

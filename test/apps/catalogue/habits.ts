import type { Program } from '../programs.ts'

/** What programs do about signals and about ports in use. */
export const HABITS: Program[] = [{ name: 'express-sigterm', packages: { express: '5' }, entry: 'express-sigterm.cjs',
  asks: { expects: 'hello from express' } }, { name: 'close-with-grace',
  packages: { 'close-with-grace': '2', fastify: '5' }, entry: 'fastify-close-with-grace.mjs',
  asks: { expects: 'from fastify' } }, { name: 'terminus', packages: { '@godaddy/terminus': '4' },
  entry: 'terminus.cjs', asks: { expects: 'hello from behind terminus' } }, { name: 'http-terminator',
  packages: { 'http-terminator': '3' }, entry: 'http-terminator.cjs', asks: { expects: 'hello until terminated' } }, {
  name: 'http-graceful-shutdown',
  packages: { 'http-graceful-shutdown': '3', express: '5' },
  entry: 'http-graceful-shutdown.cjs',
  asks: { expects: 'hello from express' }
}, { name: 'keep-alive-header', packages: {}, entry: 'keep-alive-header.cjs', asks: { expects: 'hello and stay' } }, {
  name: 'listhen',
  packages: { listhen: '1', h3: '1' },
  entry: 'listhen.mjs',
  asks: { expects: 'hello from listhen' }
}, { name: 'get-port', packages: { 'get-port': '7' }, entry: 'get-port.mjs', asks: { expects: 'hello by get-port' } }, {
  name: 'portfinder',
  packages: { portfinder: '1' },
  entry: 'portfinder.mjs',
  asks: { expects: 'hello by portfinder' }
}, { name: 'detect-port', packages: { 'detect-port': '2' }, entry: 'detect-port.mjs',
  asks: { expects: 'hello by detect-port' } }]

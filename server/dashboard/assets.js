import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Router } from 'express'
import { encode, encodingFor, KEPT } from '../api/encoding.js'
import { bundle, classicScript } from './bundle.js'

/**
 * The files that a page needs beside its HTML: ours from public/, libraries from their packages. Public: they say
 * nothing about the cluster, and the sign-in page needs them.
 * @typedef {{ content: Buffer, type: string, hash: string, encoded: Map<import('../api/encoding.js').Encoding, Promise<Buffer>> }} Asset  `encoded`: made when somebody asks for it first
 */

const PUBLIC = fileURLToPath(new URL('../../public/', import.meta.url))
const require = createRequire(import.meta.url)
const UPLOT_DIST = join(dirname(require.resolve('uplot/package.json')), 'dist')
const UPLOT_CSS = join(UPLOT_DIST, 'uPlot.min.css')
/** Smaller than the classic script, which is for browsers that know no classes. */
const SOCKET_IO = join(dirname(require.resolve('socket.io/package.json')), 'client-dist/socket.io.esm.min.js')
const UPLOT_JS = join(UPLOT_DIST, 'uPlot.iife.min.js')

const TYPES = Object.freeze(/** @type {Record<string, string>} */ ({
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}))

/** Ours, and from packages, by the name that a page knows them by. */
const FILES = Object.freeze({
  'app.css': [UPLOT_CSS, join(PUBLIC, 'app.css')],
  'favicon.svg': [join(PUBLIC, 'favicon.svg')],
  'favicon-bad.svg': [join(PUBLIC, 'favicon-bad.svg')],
  'favicon-lost.svg': [join(PUBLIC, 'favicon-lost.svg')],
  'favicon-warn.svg': [join(PUBLIC, 'favicon-warn.svg')],
  'fleet.css': [join(PUBLIC, 'fleet.css')],
  'icons.svg': [join(PUBLIC, 'icons.svg')],
  'theme.js': [join(PUBLIC, 'theme.js')],
  'libraries.js': [join(dirname(require.resolve('htmx.org')), 'htmx.min.js'), SOCKET_IO]
})

/** Each comes with what it imports. */
const MODULES = Object.freeze(['live.js', 'charts.js', 'worker.js', 'flame.js', 'history.js', 'logs.js', 'picks.js', 'access.js', 'palette.js', 'commands.js', 'notifications.js'])
/** What they import that is not ours: minified, which packages offer as a classic script alone. */
const UPLOT = Object.freeze({ 'uplot.js': 'uPlot' })

/** @type {Map<string, Asset>} read once: a page and its files always belong together, whatever an upgrade does to the disk */
const ASSETS = new Map([
  ...Object.entries(FILES).map(([name, files]) => /** @type {const} */ ([name, toAsset(name, withoutReasons(name, files.map(read).join('\n')))])),
  ...MODULES.map((name) => /** @type {const} */ ([name, toAsset(name, bundle(name, readModule, UPLOT))]))
])

/** Changes when any file does: a page that was loaded before an upgrade can tell that it is out of date. */
export const ASSETS_VERSION = hashOf(Buffer.from([...ASSETS.values()].map(({ hash }) => hash).join()))

/** @param {string} name @returns {string} a URL that changes with the content, so that it may be cached for good */
export function assetUrl (name) {
  const asset = ASSETS.get(name)
  if (!asset) throw new Error(`no asset is called ${name}`)
  return `/assets/${name}?v=${asset.hash}`
}

/** Answers GET /assets/<name>; a name that is not in the table goes on to the 404 of the app. */
export function assetsRouter () {
  const router = Router()
  router.get('/assets/:name', async (req, res, next) => {
    const asset = ASSETS.get(req.params.name)
    if (!asset) return next()
    const isPinned = req.query.v === asset.hash
    res.set({
      'Content-Type': asset.type,
      // Opened by itself it needs nothing; what a page may do with it, the page says.
      'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
      ETag: `"${asset.hash}"`,
      'Cache-Control': isPinned ? 'public, max-age=31536000, immutable' : 'no-cache'
    })
    // Nothing else that the rest of the app varies by applies.
    res.set('Vary', 'Accept-Encoding')
    const encoding = encodingFor(req)
    if (encoding) res.set('Content-Encoding', encoding)
    res.send(encoding ? await encodedOf(asset, encoding) : asset.content)
  })
  return router
}

/** @param {string} name @param {string} text @returns {Asset} */
function toAsset (name, text) {
  const content = Buffer.from(text)
  return { content, type: TYPES[extname(name)], hash: hashOf(content), encoded: new Map() }
}

/** @param {Asset} asset @param {import('../api/encoding.js').Encoding} encoding */
function encodedOf ({ content, encoded }, encoding) {
  const known = encoded.get(encoding) ?? encode(content, encoding, KEPT)
  encoded.set(encoding, known)
  return known
}

/** What a style is for, nobody reads in a browser. @param {string} name @param {string} text */
function withoutReasons (name, text) {
  return name.endsWith('.css') ? text.replace(/\/\*.*?\*\/\s*/gs, '').replace(/\n\s+/g, '\n') : text
}

function read (/** @type {string} */ file) {
  const text = readFileSync(file, 'utf8')
  return file === SOCKET_IO ? classicScript(text, 'io') : text
}

function readModule (/** @type {string} */ name) {
  return read(name === 'uplot.js' ? UPLOT_JS : join(PUBLIC, name))
}

function hashOf (/** @type {Buffer} */ content) {
  return createHash('sha256').update(content).digest('base64url').slice(0, 12)
}

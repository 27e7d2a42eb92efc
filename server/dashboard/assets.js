import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Router } from 'express'

/**
 * The files that a page needs beside its HTML: ours from public/, libraries from their packages. Public: they say
 * nothing about the cluster, and the sign-in page needs them.
 * @typedef {{ content: Buffer, type: string, hash: string }} Asset
 */

const PUBLIC = fileURLToPath(new URL('../../public/', import.meta.url))
const require = createRequire(import.meta.url)

const TYPES = Object.freeze(/** @type {Record<string, string>} */ ({
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}))

const FILES = Object.freeze({
  'app.css': join(PUBLIC, 'app.css'),
  'favicon.svg': join(PUBLIC, 'favicon.svg'),
  'icons.svg': join(PUBLIC, 'icons.svg'),
  'theme.js': join(PUBLIC, 'theme.js'),
  'live.js': join(PUBLIC, 'live.js'),
  'chart.js': join(PUBLIC, 'chart.js'),
  'chart-marks.js': join(PUBLIC, 'chart-marks.js'),
  'charts.js': join(PUBLIC, 'charts.js'),
  'vitals-feed.js': join(PUBLIC, 'vitals-feed.js'),
  'access.js': join(PUBLIC, 'access.js'),
  'copy.js': join(PUBLIC, 'copy.js'),
  'dialogs.js': join(PUBLIC, 'dialogs.js'),
  'format.js': join(PUBLIC, 'format.js'),
  'log-text.js': join(PUBLIC, 'log-text.js'),
  'log-backlog.js': join(PUBLIC, 'log-backlog.js'),
  'log-tail.js': join(PUBLIC, 'log-tail.js'),
  'log-view.js': join(PUBLIC, 'log-view.js'),
  'logs.js': join(PUBLIC, 'logs.js'),
  'ticks.js': join(PUBLIC, 'ticks.js'),
  'toasts.js': join(PUBLIC, 'toasts.js'),
  'uplot.css': join(dirname(require.resolve('uplot/package.json')), 'dist/uPlot.min.css'),
  'uplot.js': join(dirname(require.resolve('uplot/package.json')), 'dist/uPlot.esm.js'),
  'htmx.js': join(dirname(require.resolve('htmx.org')), 'htmx.min.js'),
  'socket.io.js': join(dirname(require.resolve('socket.io/package.json')), 'client-dist/socket.io.min.js')
})

/** @type {Map<string, Asset>} read once: a page and its files always belong together, whatever an upgrade does to the disk */
const ASSETS = new Map(Object.entries(FILES).map(([name, file]) => [name, load(file)]))

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
  router.get('/assets/:name', (req, res, next) => {
    const asset = ASSETS.get(req.params.name)
    if (!asset) return next()
    const isPinned = req.query.v === asset.hash
    res.set({
      'Content-Type': asset.type,
      ETag: `"${asset.hash}"`,
      'Cache-Control': isPinned ? 'public, max-age=31536000, immutable' : 'no-cache'
    })
    // The same for everybody: what the rest of the app varies by does not apply.
    res.removeHeader('Vary')
    res.send(asset.content)
  })
  return router
}

/** @returns {Asset} */
function load (/** @type {string} */ file) {
  const content = readFileSync(file)
  return { content, type: TYPES[extname(file)], hash: hashOf(content) }
}

function hashOf (/** @type {Buffer} */ content) {
  return createHash('sha256').update(content).digest('base64url').slice(0, 12)
}

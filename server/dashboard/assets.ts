import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { Router } from 'express'
import { encodeContent, encodingFor, KEPT, type Encoding } from '../api/encoding.ts'
import { heldText } from '../system/built.ts'
import { CLASSIC_SCRIPTS, FIRST_SCRIPT, PAGE_SCRIPTS, THREAD } from './scripts.ts'

/**
 * The files that a page needs beside its HTML: ours from public/, libraries from their packages. Nobody has to sign in
 * for them, as the sign-in page needs them and they say nothing about the cluster.
 * `encoded`: made at the first request for it
 */
type Asset = { content: Buffer, type: string, hash: string, encoded: Map<Encoding, Promise<Buffer>> }

const TYPES: Readonly<Record<string, string>> = Object.freeze({ '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml' })

const STYLES_AND_IMAGES: readonly string[] = Object.freeze(['access.css', 'alerts.css', 'app.css', 'apps.css',
  'checks.css', 'crashes.css', 'docs.css', 'favicon-bad.svg', 'favicon-lost.svg', 'favicon-warn.svg', 'favicon.svg',
  'fleet.css', 'history.css', 'icons.svg', 'jobs.css', 'logs.css', 'routes.css', 'rollout.css', 'settings.css',
  'worker.css'])

/** read once, so that a page and its files belong together even when an upgrade replaces them on disk */
const ASSETS: Map<string, Asset> = new Map()
for (const name of STYLES_AND_IMAGES) ASSETS.set(name, toAsset(name, styleOrImage(name)))
for (const name of [...CLASSIC_SCRIPTS, FIRST_SCRIPT, ...PAGE_SCRIPTS, THREAD])
  ASSETS.set(name, toAsset(name, heldText(`pages/${name}`)))

/** Changes when any file does, so that a page that was loaded before an upgrade can tell that it is out of date. */
export const ASSETS_VERSION = hashOf(Buffer.from([...ASSETS.values()].map(({ hash }) => hash).join()))

/** @returns a URL that changes with the content, so that it may be cached for good */
export function assetUrl (name: string): string {
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
      // An asset that is opened by itself needs nothing; the policy of a page governs how that page uses it.
      'Content-Security-Policy': 'default-src \'none\';frame-ancestors \'none\'',
      ETag: `"${asset.hash}"`,
      'Cache-Control': isPinned ? 'public, max-age=31536000, immutable' : 'no-cache'
    })
    // An asset does not vary by the other headers that the rest of the app varies by.
    res.set('Vary', 'Accept-Encoding')
    const encoding = encodingFor(req)
    if (encoding) res.set('Content-Encoding', encoding)
    res.send(encoding ? await encodedOf(asset, encoding) : asset.content)
  })
  return router
}

function toAsset (name: string, text: string): Asset {
  const content = Buffer.from(text)
  return { content, type: TYPES[extname(name)], hash: hashOf(content), encoded: new Map() }
}

function encodedOf ({ content, encoded }: Asset, encoding: Encoding) {
  const known = encoded.get(encoding) ?? encodeContent(content, encoding, KEPT)
  encoded.set(encoding, known)
  return known
}

/** A browser needs no comments of a style sheet. */
function styleOrImage (name: string) {
  const text = heldText(`public/${name}`)
  if (!name.endsWith('.css')) return text
  const own = text.replace(/\/\*.*?\*\/\s*/gs, '').replace(/\n\s+/g, '\n')
  return name === 'app.css' ? `${heldText('pages/uplot.css')}\n${own}` : own
}

function hashOf (content: Buffer) {
  return createHash('sha256').update(content).digest('base64url').slice(0, 12)
}

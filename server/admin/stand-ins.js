// Temporary: until pages, assets and live are here.
import { Router } from 'express'
import { Server } from 'socket.io'
const load = async (/** @type {string} */ path, /** @type {any} */ standIn) => {
  try { return await import(path) } catch { return standIn }
}
export const { assetsRouter } = await load('./routes/assets.js', { assetsRouter: () => Router() })
export const { pagesRouter } = await load('./routes/pages.js', { pagesRouter: () => Router().get('/', (_req, res) => { res.type('html').send('<!doctype html><title>overview</title>') }) })
export const { attachLive } = await load('./live.js', { attachLive: (/** @type {any} */ { httpServer }) => { const io = new Server(httpServer, { serveClient: false }); return { close: () => io.close() } } })
export const { createViews } = await load('./views.js', { createViews: () => ({ render: (/** @type {string} */ _name, /** @type {any} */ data) => `<!doctype html><title>Sign in</title><p>${data.notice?.text ?? ''}</p><input name=next value="${data.next}">` }) })

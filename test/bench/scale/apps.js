import { startHostAdmin } from '../../support/admin.js'
import { visitPage } from './page.js'

/** What the master of a host does for its apps. @type {Readonly<Record<string, import('./measure.js').Part>>} */
export const APP_PARTS = Object.freeze({
  page: { title: 'the list of apps', unit: 'app', open: pageOf('/') },
  api: { title: 'the same by the API', unit: 'app', open: pageOf('/api/v1/apps') },
  metrics: { title: '`/metrics` of a host', unit: 'app', open: pageOf('/metrics') }
})

/** @param {string} path @returns {import('./measure.js').Part['open']} */
function pageOf (path) {
  return async (n, owner) => {
    const names = Array.from({ length: n }, (_, index) => `app-${String(index + 1).padStart(3, '0')}`)
    return visitPage(await startHostAdmin(/** @type {any} */ (owner), { names }), path)
  }
}

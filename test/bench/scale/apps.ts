import { startHostAdmin } from '../../support/admin.ts'
import { visitPage } from './page.ts'
import type { Part } from './measure.ts'

/** What the master of a host does for its apps. */
export const APP_PARTS: Readonly<Record<string, Part>> = Object.freeze({
  page: { title: 'the list of apps', unit: 'app', open: pageOf('/') },
  api: { title: 'the same by the API', unit: 'app', open: pageOf('/api/v1/apps') },
  metrics: { title: '`/metrics` of a host', unit: 'app', open: pageOf('/metrics') }
})

function pageOf (path: string): Part['open'] {
  return async (n, owner) => {
    const names = Array.from({ length: n }, (_, index) => `app-${String(index + 1).padStart(3, '0')}`)
    return visitPage(await startHostAdmin(owner, { names }), path)
  }
}

/**
 * The live parts of a page.
 * @typedef {import('./pages.js').Fragment} Fragment
 * @typedef {{ render: () => Fragment[], chart: number | null }} Followed  `chart`: see `chartOf` of a page
 * @typedef {object} LivePages  what the live connection knows of the pages of a site
 * @property {(handler: () => void) => () => void} onChange  returns what ends it
 * @property {(can: import('./powers.js').Powers, url: URL) => Followed} follow
 * @property {((slot: number, sinceMs: number) => import('../../public/live-events.d.ts').ChartValues | undefined) | null} chart  null: no page has charts
 * @property {number} [beatMs]  how often pages that somebody looks at are rendered, where it is not the usual
 * @property {Pick<import('../deck.js').Deck, 'events' | 'notices'> | null} alarms  where alarms come from; null: from nowhere
 */

/**
 * @typedef {object} LivePage  what is live of a page, see pages.js
 * @property {string} path
 * @property {(asked: any) => object} model
 * @property {readonly string[]} [fragments]
 * @property {(asked: any) => () => Fragment[]} [follow]
 * @property {(asked: any) => number | null} [chartOf]
 */

/**
 * @template {{ render: import('./views.js').Views['render'], can?: import('./powers.js').Powers }} Sources
 * @param {readonly LivePage[]} pages
 * @param {{ sources: Sources, frame: { fragments: readonly string[], model: () => object } }} site  `frame`: what stands around every page
 * @param {URL} url
 * @returns {Followed}
 */
export function followPage (pages, { sources, frame }, { pathname, searchParams: params }) {
  const { renderPage, chart } = findPage()
  return { render: () => [...renderPage(), ...renderAll(frame.fragments, frame.model())], chart }

  /** @returns {{ renderPage: () => Fragment[], chart: number | null }} */
  function findPage () {
    for (const { path, model, fragments = [], follow, chartOf } of pages) {
      // Older pages of a list do not change.
      if (params.has('cursor') || (!follow && fragments.length === 0)) continue
      const [matched, id = ''] = patternOf(path).exec(pathname) ?? []
      if (matched === undefined) continue
      const asked = { ...sources, params, id }
      return { renderPage: follow?.(asked) ?? (() => renderAll(fragments, model(asked))), chart: chartOf?.(asked) ?? null }
    }
    return { renderPage: () => [], chart: null }
  }

  function renderAll (/** @type {readonly string[]} */ names, /** @type {object} */ shown) {
    return names.map((name) => ({ id: name, html: sources.render(`partials/${name}`, { can: sources.can, ...shown }) }))
  }
}

/** @param {string} path as express reads it */
function patternOf (path) {
  return new RegExp(`^${path.replace(':id', '(\\d+)').replace(':name', '([\\w-]+)')}$`)
}

import type { Fragment } from './pages.ts'
import type { Powers } from './powers.ts'
import type { ChartValues } from '../../public/live-events.d.ts'
import type { Deck } from '../deck.ts'
import type { Views } from './views.ts'

/** The live parts of a page. */
/** `chart`: see `chartOf` of a page */
export type Followed = { render: () => Fragment[], chart: number | null }
/** what the live connection knows of the pages of a site */
export type LivePages = {
  /** returns what ends it */
  onChange: (handler: () => void) => () => void,
  follow: (can: Powers, url: URL) => Followed,
  /** null: no page has charts */
  chart: ((slot: number, sinceMs: number) => ChartValues | undefined) | null,
  /** how often pages that somebody looks at are rendered, where it is not the usual */
  beatMs?: number,
  /** where alarms come from; null: from nowhere */
  alarms: Pick<Deck, 'events' | 'notices'> | null
}

/** what is live of a page, see pages.ts */
export type LivePage<Asked> = { path: string, model: (asked: Asked) => object, fragments?: readonly string[],
  follow?: (asked: Asked) => () => Fragment[], chartOf?: (asked: Asked) => number | null }

/** `frame`: what stands around every page */
export function followPage<Sources extends { render: Views['render'], can?: Powers }> (
  pages: readonly LivePage<Sources & { params: URLSearchParams, id: string }>[],
  { sources, frame }: { sources: Sources, frame: { fragments: readonly string[], model: () => object } },
  { pathname, searchParams: params }: URL
): Followed {
  const { renderPage, chart } = findPage()
  return { render: () => [...renderPage(), ...renderAll(frame.fragments, frame.model())], chart }

  function findPage (): { renderPage: () => Fragment[], chart: number | null } {
    for (const { path, model, fragments = [], follow, chartOf } of pages) {
      // Older pages of a list do not change.
      if (params.has('cursor') || (!follow && fragments.length === 0)) continue
      const [matched, id = ''] = patternOf(path).exec(pathname) ?? []
      if (matched === undefined) continue
      const asked = { ...sources, params, id }
      return { renderPage: follow?.(asked) ?? (() => renderAll(fragments, model(asked))),
        chart: chartOf?.(asked) ?? null }
    }
    return { renderPage: () => [], chart: null }
  }

  function renderAll (names: readonly string[], shown: object) {
    return names.map((name) => ({ id: name, html: sources.render(`partials/${name}`, { can: sources.can, ...shown }) }))
  }
}

/** `path`: as express reads it */
function patternOf (path: string) {
  return new RegExp(`^${path.replace(':id', '(\\d+)').replace(':name', '([\\w-]+)')}$`)
}

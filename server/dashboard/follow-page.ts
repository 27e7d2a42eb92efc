import type { Fragment } from './fragment.ts'
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

/** `status` or `problem.status`: the HTTP status, if not 200; `fragments`: in place of those of the page */
export type Model = object & { status?: number, problem?: { status: number } | null, canonicalUrl?: string,
  fragments?: readonly string[] }

/** what is live of a page, see pages.ts */
export type LivePage<Asked> = {
  path: string,
  model: (asked: Asked) => object,
  /** what changes of it, by ids, each a file of views/partials; a model may name its own */
  fragments?: readonly string[],
  /**
   * In place of `model`, where each rendering needs what the one before knew. What it returns is called for each
   * rendering; null: nothing is new.
   */
  follow?: (asked: Asked) => () => Model | null,
  /** the slot whose vitals it shows as charts, 0 for the cluster; null where there are no charts */
  chartOf?: (asked: Asked) => number | null
}

/** `frame`: what stands around every page */
export function followPage<Sources extends { can?: Powers }> (
  pages: readonly LivePage<Sources & { params: URLSearchParams, id: string }>[],
  { views, sources, frame }: { views: Pick<Views, 'fragment'>, sources: Sources, frame: () => Model },
  { pathname, searchParams: params }: URL
): Followed {
  const { renderPage, chart } = findPage()
  return { render: () => [...renderPage(), ...renderAll([], frame())], chart }

  function findPage (): { renderPage: () => Fragment[], chart: number | null } {
    for (const { path, model, fragments = [], follow, chartOf } of pages) {
      // Older pages of a list do not change.
      if (params.has('cursor') || (!follow && fragments.length === 0)) continue
      const [matched, id = ''] = patternOf(path).exec(pathname) ?? []
      if (matched === undefined) continue
      const asked = { ...sources, params, id }
      const read = follow?.(asked) ?? (() => model(asked))
      return { renderPage: () => renderAll(fragments, read()), chart: chartOf?.(asked) ?? null }
    }
    return { renderPage: () => [], chart: null }
  }

  function renderAll (names: readonly string[], shown: Model | null) {
    if (shown === null) return []
    return (shown.fragments ?? names).map((name) => views.fragment(name, { can: sources.can, ...shown }))
  }
}

/** `path`: as express reads it */
function patternOf (path: string) {
  return new RegExp(`^${path.replace(':id', '(\\d+)').replace(':name', '([\\w-]+)')}$`)
}

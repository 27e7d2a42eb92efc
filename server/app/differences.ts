import { isDeepStrictEqual } from 'node:util'
import { isOfHost, type Config } from '../config/config.ts'
import { isPassing } from '../releases/environment.ts'
import type { App } from './app.ts'
import type { AppOrder } from '../config/orders.ts'
import type { NewChange } from '../config/settings.ts'

/** What an order asks for and does not run so. `isOfWords`: its command line says something else than the one that runs. */
export type Differences = { options: NewChange[], variables: string[], isOfWords: boolean }

/** `before`: the order that it came from; `config`: as `order` says now */
export function differencesOf (
  { settings, releases }: { settings: Pick<App['settings'], 'changesIn'>,
    releases: Pick<App['releases'], 'configured'> },
  before: AppOrder,
  order: AppOrder,
  config: Config
): Differences {
  const options = settings.changesIn(config, releases.configured()).filter(({ name }) =>
    !isOfHost(name) && name !== 'name'
  )
  return { options, variables: changedVariables(before.env, order.env),
    isOfWords: !isDeepStrictEqual(wordsOf(before), wordsOf(order)) }
}

/** Names those that differ, but for what each shell sets anew. */
export function changedVariables (before: AppOrder['env'], now: AppOrder['env']): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  return names.filter((name) => before[name] !== now[name] && !isPassing(name)).sort()
}

/** The same for people: names alone, as values may be secret. */
export function differenceTexts ({ options, variables }: Omit<Differences, 'isOfWords'>): string[] {
  return [
    ...options.map(({ name, from, to }) =>
      from === null && to === null ? name : `${name} ${JSON.stringify(from)} → ${JSON.stringify(to)}`
    ),
    ...variables.map((name) => `variable ${name}`)
  ]
}

function wordsOf ({ flags, config, app, cwd }: AppOrder) {
  return { flags, config, app, cwd }
}

import { createSettings } from '../config/settings.ts'
import { differencesOf, differenceTexts } from './differences.ts'
import type { App } from './app.ts'
import type { AppOrder } from '../config/orders.ts'
import type { Config } from '../config/config.ts'
import type { Runs } from './runs.ts'

/**
 * What an ordered start that does not get ready can go back to: what ran, where that is something else.
 * @param ran `config`: of `runs`
 * @returns `started`: what has not got ready, in words; `whyNot`: why what ran cannot come back; null: it is the same
 */
export async function wayBack ({ first: { release }, releases }: Pick<App, 'first' | 'releases'>,
  ran: { runs: Runs, config: Config },
  now: { order: AppOrder, config: Config }): Promise<{ started: string, whyNot: string | null } | null>
{
  const { release: { id }, order } = ran.runs
  const differences = differenceTexts(
    differencesOf({ settings: createSettings(ran.config, { key: '' }), releases: { configured: () => ran.config } },
      order ?? now.order, now.order, now.config)
  )
  if (release.id === id && differences.length === 0) return null
  return { started: release.id === id ? `${id} with ${differences.join(', ')}` : release.id,
    whyNot: await releases.whyNoReturn(id) }
}

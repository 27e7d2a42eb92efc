import assert from 'node:assert/strict'
import { SCHEMA } from '../../server/config/options.ts'
import type { Seen } from './event-log.ts'
import type { DeckOptions } from '../../server/library/records.ts'

/** What the text of a config file exports, which is held against the schema. */
export async function loadGenerated (
  text: string
): Promise<{ [name: string]: unknown, apps: Record<string, Seen<DeckOptions>>, env?: Record<string, string> }> {
  const { default: config } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  const { apps, ...rest } = config
  if (apps !== undefined) assert.deepEqual(rest, {})
  for (const app of Object.values(apps ?? { config })) {
    const { success, error } = SCHEMA.safeParse(app)
    assert.ok(success, `${error?.message}\n${text}`)
  }
  return config
}

import assert from 'node:assert/strict'
import { SCHEMA } from '../../server/config/options.js'

/** Options that a generated config may have, and that the schema has not yet. */
const COMING = [['restart', 'policy'], ['restart', 'cron']]

/**
 * What the text of a config file exports, which is held against the schema.
 * @param {string} text
 * @returns {Promise<any>}
 */
export async function loadGenerated (text) {
  const { default: config } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  const { apps, ...rest } = config
  if (apps !== undefined) assert.deepEqual(rest, {})
  for (const app of Object.values(apps ?? { config })) {
    const known = structuredClone(app)
    for (const [group, key] of COMING) delete known[group]?.[key]
    const { success, error } = SCHEMA.safeParse(known)
    assert.ok(success, `${error?.message}\n${text}`)
  }
  return config
}

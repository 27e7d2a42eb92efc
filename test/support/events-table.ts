import { EVENT_TYPES, kindOf } from '../../server/events/kinds.ts'

/** The manual's table of events. */
export function eventsTable () {
  const rows = EVENT_TYPES.map((type) => `| \`${type}\` | ${kindOf({ type, cause: null }).label} |`)
  return ['| type | on the dashboard |', '| --- | --- |', ...rows, ''].join('\n')
}

import { EVENT_TYPES, kindOf } from '../../server/events/kinds.js'

/** The manual's table of events: `node test/support/events-table.js` prints it. */
export function eventsTable () {
  const rows = EVENT_TYPES.map((type) => `| \`${type}\` | ${kindOf({ type, cause: null }).label} |`)
  return ['| type | on the dashboard |', '| --- | --- |', ...rows, ''].join('\n')
}

if (process.argv[1]?.endsWith('events-table.js')) console.log(eventsTable())

import { z } from 'zod'

/**
 * One alert: whom clusterdeck tells about which events. The configuration file and the API say it in the same fields.
 * @typedef {z.infer<typeof ALERT>} Alert
 * @typedef {Alert['kind']} AlertKind
 * @typedef {z.infer<typeof ALERT_CHANGES>} AlertChanges  what is left out stays
 */

/** So many can be added while clusterdeck runs, beside those of the configuration file. */
export const MAX_ADDED_ALERTS = 20
/** The port of an SMTP server for which none is given. */
export const DEFAULT_MAIL_PORT = 587
export const ALERT_KINDS = Object.freeze(/** @type {const} */ (['slack', 'discord', 'teams', 'mail', 'webhook']))

/** What each kind needs, and what it may have besides. */
const FIELDS = Object.freeze({
  slack: { needs: ['url'], may: [] },
  discord: { needs: ['url'], may: [] },
  teams: { needs: ['url'], may: [] },
  webhook: { needs: ['url'], may: ['secret'] },
  mail: { needs: ['host', 'from', 'to'], may: ['port', 'user', 'password'] }
})
const OF_ALL = ['kind', 'name', 'events']

const MAIL_ADDRESS = z.string().max(254).regex(/^[^\s@<>(),;:\\"[\]]+@[^\s@<>(),;:\\"[\]]+$/)
const line = (/** @type {number} */ max) => z.string().min(1).max(max).regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u)

/** What is `writeOnly` is a password or as good as one: no answer, error or event shows it. */
export const ALERT = z.strictObject({
  kind: z.enum(ALERT_KINDS).describe(`one of ${ALERT_KINDS.join(', ')}`),
  name: line(60).regex(/\S/).optional().meta({ description: 'a name of at most 60 characters', examples: ['ops'] }),
  events: z.array(z.string().max(100).regex(/^[a-z*][a-z.*-]*(:[a-z*-]+)?$/)).min(1).max(100).optional()
    .meta({ description: 'types of events such as worker.*, or with a cause such as worker.exited:hung; default: the problems', examples: [['worker.*', 'rollout.failed']] }),
  url: z.url({ protocol: /^https?$/ }).max(2000).refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url)).optional()
    .meta({ description: 'an http or https address without user and password', examples: ['https://example.com/hook'], writeOnly: true }),
  secret: line(200).min(16).optional().meta({ description: 'at least 16 characters', writeOnly: true }),
  to: z.array(MAIL_ADDRESS).min(1).max(20).optional().meta({ description: 'a list of 1 to 20 mail addresses', examples: [['ops@example.com']] }),
  from: MAIL_ADDRESS.optional().meta({ description: 'a mail address', examples: ['clusterdeck@example.com'] }),
  host: z.string().max(253).regex(/^[\w.:-]+$/).optional().meta({ description: 'the name or address of an SMTP server', examples: ['smtp.example.com'] }),
  port: z.int().min(1).max(65_535).optional().describe(`a port from 1 to 65535; default: ${DEFAULT_MAIL_PORT}; with 465 all is encrypted from the first byte on`),
  user: line(200).optional().meta({ description: 'a name of at most 200 characters', writeOnly: true }),
  password: line(500).optional().meta({ description: 'at most 500 characters', writeOnly: true })
}).meta({ examples: [{ kind: 'slack', name: 'ops', url: 'https://hooks.example.com/services/T0/B0/x' }] })

export const ALERT_ID = z.string().regex(/^(?:file-)?[1-9]\d{0,8}$/).meta({ description: 'the id of an alert such as 3 or file-1', examples: ['3'] })

export const ALERT_CHANGES = ALERT.omit({ kind: true }).extend({
  isPaused: z.boolean().optional().describe('true or false'),
  events: ALERT.shape.events.unwrap().nullable().optional().meta({ description: 'types of events such as worker.*; null: the problems', examples: [['worker.*']] })
}).meta({ examples: [{ isPaused: true }] })

/**
 * @param {Alert} alert
 * @returns {{ field: string, expected: string } | null} what of it does not fit its kind
 */
export function alertFlaw (alert) {
  const { needs, may } = FIELDS[alert.kind]
  const given = Object.entries(alert).filter(([, value]) => value !== undefined).map(([name]) => name)
  const missing = needs.find((name) => !given.includes(name))
  if (missing) return { field: missing, expected: `to be given for ${alert.kind}` }
  const surplus = given.find((name) => ![...OF_ALL, ...needs, ...may].includes(name))
  if (surplus) return { field: surplus, expected: `not to be given for ${alert.kind}, which takes ${[...needs, ...may].join(', ')}` }
  if ((alert.user === undefined) !== (alert.password === undefined)) return { field: 'password', expected: 'to be given with user, and only with it' }
  return null
}

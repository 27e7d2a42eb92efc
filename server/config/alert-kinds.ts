import type { Alert } from './alert.ts'

/** So many can be added while clusterdeck runs, beside those of the configuration file. */
export const MAX_ADDED_ALERTS = 20
/** The port of an SMTP server for which none is given. */
export const DEFAULT_MAIL_PORT = 587
export const ALERT_KINDS = Object.freeze(['slack', 'discord', 'teams', 'mail', 'sentry', 'webhook'] as const)

/** What each kind needs, and what it may have besides. */
const FIELDS = Object.freeze({ slack: { needs: ['url'], may: [] }, discord: { needs: ['url'], may: [] },
  teams: { needs: ['url'], may: [] }, sentry: { needs: ['dsn'], may: [] },
  webhook: { needs: ['url'], may: ['secret', 'body', 'headers'] },
  mail: { needs: ['host', 'from', 'to'], may: ['port', 'user', 'password'] } })
const OF_ALL = ['kind', 'name', 'events', 'apps']

/** @returns what of it does not fit its kind, or what it is an alert of */
export function alertFlaw (alert: Alert, { isOfHost = false }: { isOfHost?: boolean } = {}): { field: string,
  expected: string } | null
{
  if (alert.apps && !isOfHost) return { field: 'apps', expected: 'to be given for an alert of a host alone' }
  const { needs, may } = FIELDS[alert.kind]
  const given = Object.entries(alert).filter(([, value]) => value !== undefined).map(([name]) => name)
  const missing = needs.find((name) => !given.includes(name))
  if (missing) return { field: missing, expected: `to be given for ${alert.kind}` }
  const surplus = given.find((name) => ![...OF_ALL, ...needs, ...may].includes(name))
  if (surplus)
    return { field: surplus,
      expected: `not to be given for ${alert.kind}, which takes ${[...needs, ...may].join(', ')}` }
  if ((alert.user === undefined) !== (alert.password === undefined))
    return { field: 'password', expected: 'to be given with user, and only with it' }
  return null
}

/** @throws {TypeError} it is no JSON */
export function templateText (body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body)
}

import { until } from '../../support/until.ts'
import { badBody, missing, type Row, type Rows } from './row.ts'
import type { Deck } from '../../../server/deck.ts'
import type { Admin, HostAdmin } from '../../support/admin.ts'

/** What an app and a host have alike. */

const noAlert = missing({ alert: '9' }, 'Alert 9 does not exist')

/** `fail`: makes the next delivery fail */
export function alertRows<A extends Admin | HostAdmin> (
  { of, at, alertsOf, fail }: { of: string, at: string, alertsOf: (admin: A) => Deck['alerts'],
    fail: (admin: A) => void }
): Rows<A> {
  const hook = { kind: 'webhook', url: 'https://example.com/gone' }
  const anAlert = (admin: A) => ({ alert: alertsOf(admin).add({ wanted: hook as never, actor: 'bob' }) })
  const late: Row<A>['late'] = { read: `${at}/alerts/1`, by: ['patch', `${at}/alerts/1`, { name: 'ops' }],
    seen: (admin) => alertsOf(admin).digest('1'), why: 'bob has changed this alert since you opened this' }
  return { [`list${of}Alerts`]: { role: 'viewer', given: (admin) => void anAlert(admin), answer: { items: [hook] } },
    [`add${of}Alert`]: { role: 'admin', body: { ...hook, name: 'ops', events: ['rollout.*'] }, tells: ['alert.added'],
      answer: { id: '1', name: 'ops', url: 'https://example.com/gone', createdBy: 'ada' },
      location: `/api/v1${at}/alerts/1`,
      bad: badBody({ ...hook, url: 'file:///x' }, 'url: expected an http or https') },
    [`get${of}Alert`]: { role: 'viewer', given: anAlert, answer: { id: '1', kind: 'webhook' }, bad: noAlert },
    [`change${of}Alert`]: { role: 'admin', given: anAlert, body: { name: 'night', isPaused: true },
      tells: ['alert.changed'], answer: { name: 'night', isPaused: true }, bad: noAlert, late },
    [`delete${of}Alert`]: { role: 'admin', given: anAlert, tells: ['alert.deleted'], answer: { id: '1' }, bad: noAlert,
      late },
    [`test${of}Alert`]: { role: 'operator', given: anAlert, tells: ['alert.tested'],
      answer: { id: 1, state: 'pending' }, bad: noAlert },
    [`retry${of}Delivery`]: { role: 'operator', async given (admin) {
      const { alert: id } = anAlert(admin)
      fail(admin)
      alertsOf(admin).test({ id, actor: 'bob' })
      await until(() => alertsOf(admin).list().some(({ deliveries }) => deliveries[0]?.state === 'failed'),
        'the failure')
      return { alert: id }
    }, path: { n: 1 }, tells: ['alert.retried'], answer: { id: 1, error: 'answered 410' },
      bad: missing({ alert: '1', n: 9 }, 'Alert 1 has no delivery 9') } }
}

export const ACCESS_ROWS: Rows<Admin | HostAdmin> = {
  listTokens: { role: 'admin', given: async ({ tokenFor }) => void await tokenFor('eve', 'viewer'),
    answer: { items: [{ name: 'eve' }] } },
  createToken: { role: 'admin', isForToken: true, body: { name: 'eve', role: 'viewer' }, tells: ['token.created'],
    answer: { name: 'eve', role: 'viewer', createdBy: 'ada' },
    bad: badBody({ name: 'system', role: 'viewer' }, 'name: expected') },
  revokeToken: { role: 'admin', given: async ({ tokenFor }) => ({ id: (await tokenFor('eve', 'viewer')).id }),
    tells: ['token.revoked'], answer: { name: 'eve', alsoEnded: [] }, bad: missing({ id: 99 }, 'Token 99') },
  createSignInLink: { role: 'admin', body: { name: 'eve', role: 'viewer' }, tells: ['token.created'], answer: {},
    bad: badBody({ ttl: 'soon' }, 'ttl: expected the longest time of its session') }
}

import { appendFileSync } from 'node:fs'
import { liveFile } from '../../../server/logs/log-files.ts'
import { badBody, missing, type Rows } from './row.ts'
import { ACCESS_ROWS, alertRows } from './shared-rows.ts'
import type { HostAdmin } from '../../support/admin.ts'

const aLoss = ({ events }: HostAdmin) => ({
  id: events.publish({ type: 'keeper.lost', message: 'the keeper is gone' }).id
})
const noApp = missing({ app: 'shp' }, 'There is no app "shp" on this host (did you mean "shop"?)')

/** Each operation of a host that has apps named mail and shop. */
export const HOST_ROWS: Rows<HostAdmin> = { getHost: { role: 'viewer', answer: { apps: 2, upgrade: null } },
  upgradeHost: { role: 'admin', isForToken: true, body: { note: 'autumn' },
    does: { type: 'upgrade-host', more: { note: 'autumn' } }, answer: { note: 'autumn', actor: 'ada' },
    bad: badBody({ execPath: 'node' }, 'execPath: expected the absolute path') },
  beginAdoption: { role: 'admin', isForToken: true, body: { name: 'blog' }, does: { type: 'adopt', name: 'blog' },
    answer: { secret: 'once', state: 'waiting' }, location: '/api/v1/host/adoptions/1',
    bad: badBody({ name: '../x' }, 'name: expected what the host is to call it') },
  getAdoption: { role: 'admin', path: { id: 1 }, answer: { state: 'done', app: 'shop' },
    bad: missing({ id: 2 }, 'There is no adoption 2') },
  stopHost: { role: 'admin', does: { type: 'stop-host' }, answer: { state: 'stopping' } },
  listHostEvents: { role: 'viewer', given: (host) => void aLoss(host), query: { own: 'true', type: 'keeper.lost' },
    answer: { items: [{ type: 'keeper.lost' }] },
    bad: { query: { since: 'no-time' }, code: 'invalid-query', says: 'since: expected' } },
  getHostEvent: { role: 'viewer', given: aLoss, answer: { type: 'keeper.lost' },
    bad: missing({ id: 999 }, 'Event 999 does not exist') },
  listHostLogLines: { role: 'viewer',
    given: ({ apps }) =>
      appendFileSync(liveFile(apps.deck('shop').logs.folder, { slot: 1, stream: 'stdout' }), 'paid\n'),
    query: { app: 'shop', q: 'paid' }, answer: { items: [{ app: 'shop', slot: 1, text: 'paid' }], next: null },
    bad: { query: { app: 'shp' }, code: 'not-found',
      says: 'There is no app "shp" on this host (did you mean "shop"?)' } },
  listHostNotices: { role: 'viewer', given: (host) => void aLoss(host), answer: { items: [{ kind: 'keeper-lost' }] } },
  acknowledgeHostNotice: { role: 'operator', given: aLoss, tells: ['notice.acknowledged'],
    answer: { kind: 'keeper-lost' }, bad: missing({ id: 99 }, 'Notice 99 does not exist') },
  ...alertRows<HostAdmin>({ of: 'Host', at: '/host', alertsOf: ({ apps }) => apps.alerts, fail: () => {} }),
  listApps: { role: 'viewer', answer: { items: [{ name: 'mail' }, { name: 'shop' }] } },
  addApp: { role: 'admin', isForToken: true,
    body: { name: 'queue', cwd: '/srv/queue', flags: { entry: 'queue.js', workers: '2', args: ['-v'], watch: true },
      env: { A: '1' } }, does: { type: 'add', name: 'queue', more: { env: { A: '1' } } },
    answer: { name: 'queue', notApplied: [] }, location: '/api/v1/apps/queue',
    bad: badBody({ cwd: 'srv' }, 'cwd: expected the working folder, absolute') },
  getApp: { role: 'viewer', path: { app: 'shop' }, answer: { name: 'shop', path: '/apps/shop' }, bad: noApp },
  removeApp: { role: 'admin', path: { app: 'mail' }, query: { purge: 'true' },
    does: { type: 'remove', name: 'mail', more: { purge: true } }, answer: { name: 'mail' }, bad: noApp },
  changeVariables: { role: 'admin', isForToken: true, path: { app: 'shop' }, body: { env: { PORT: '3000' } },
    does: { type: 'variables', name: 'shop', more: { PORT: '3000' } }, answer: { variables: ['PORT'] },
    bad: badBody({ env: { PORT: 3000 } }, 'env.PORT: expected') },
  startApp: { role: 'operator', given: ({ apps }) => apps.closeApp('shop', { state: 'stopped' }), path: { app: 'shop' },
    does: { type: 'start', name: 'shop' }, answer: { state: 'running' }, bad: noApp },
  stopApp: { role: 'operator', path: { app: 'shop' }, does: { type: 'stop', name: 'shop' },
    answer: { state: 'stopped' }, bad: noApp }, ...ACCESS_ROWS,
  getHostFleet: { role: 'viewer', answer: { members: [{ member: 'web-1' }], rollouts: [] } },
  forgetHost: { role: 'operator', path: { member: 'web-9' }, answer: { member: 'web-9' } },
  getOpenapi: { role: 'viewer', answer: { openapi: '3.1.1' } }, isAlive: { role: null, answer: 'ok\n' },
  isReady: { role: null, answer: 'ready\n' }, isAppAlive: { role: null, path: { app: 'shop' }, answer: 'ok\n' },
  isAppReady: { role: 'viewer', path: { app: 'shop' }, answer: 'ready\n' },
  getMetrics: { role: 'viewer', answer: 'clusterdeck_app_running{app="shop"} 1' },
  sendMcpMessage: { role: 'viewer', isForToken: true, body: { jsonrpc: '2.0', id: 1, method: 'ping' },
    answer: { id: 1, result: {} }, bad: badBody({ id: 1 }, 'jsonrpc: expected') } }

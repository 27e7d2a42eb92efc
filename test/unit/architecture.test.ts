import assert from 'node:assert/strict'
import test from 'node:test'
import { complaintsAbout } from '../../build/rooms.ts'
import { rows } from '../support/rows.ts'

const FORBIDDEN = rows(`
  server/lifecycle/pool.ts            → node:fs, ../cluster/supervisor.ts, ../events/stream.ts   → pure
  server/lifecycle/rollout/rollout.ts → ../../cluster/supervisor.ts                              → pure
  workers/boot.ts                     → ../server/errors.ts                                      → inside the app
  workers/demo/app.js                 → express, ../../server/errors.ts                          → inside the app
  workers/protocol.ts                 → ./channel.ts, node:net                                   → imports nothing
  db/events.ts                        → ../server/app/app.ts, ../server/problem.ts, node:http    → knows no HTTP
  server/admin/deck-site.ts           → ../cluster/supervisor.ts, better-sqlite3                 → through the deck
  server/events/api.ts                → ../../db/history.ts, ../host/master.ts                   → through the deck
  server/dashboard/overview.ts        → ../cluster/supervisor.ts                                 → through the deck
  server/library/deck.ts              → ../cluster/supervisor.ts                                 → through the deck
  server/cluster/supervisor.ts        → ../admin/deck-site.ts, ../../db/history.ts               → who watches
  server/events/recorder.ts           → ../cluster/supervisor.ts, ../app/app.ts          → nobody who publishes
  server/releases/resolve.ts          → ../admin/deck-site.ts                            → nothing of the cluster
  server/keeper/keeper.ts             → commander                                        → only starts masters
  server/cli/commands.ts → ../cluster/supervisor.ts, ../../db/history.ts, ../host/master.ts → admin API alone
  server/app/app.ts                   → ../host/host.ts, ../keeper/link.ts                       → nothing global
  server/host/master.ts               → ../lifecycle/state.ts, ../cli.js                         → meets its apps
  server/deck.ts                      → ./cli.js                                                 → is above
  server/crashes/page.ts              → ./recorder.ts                                            → through the deck
  server/crashes/recorder.ts          → ./page-kinds.ts, ./api.ts                                → knowing who asks
  server/crashes/cli.ts               → ./crashes.ts, ./page.ts                                  → admin API alone
`, '→')

const ALLOWED = rows(`
  server/lifecycle/pool.ts             → ./rollout/rollout.ts, ../errors.ts
  server/lifecycle/rollout/rollout.ts  → ../state.ts
  workers/boot.ts                      → ./protocol.ts
  workers/demo/app.js                  → node:http, ./params.ts
  db/events.ts                         → ../server/errors.ts
  db/history.ts                        → ./open.ts
  db/open.ts                           → better-sqlite3
  server/admin/deck-site.ts            → express
  server/events/api.ts                 → ../errors.ts
  server/systemd/service-manager.ts    → ../words/health.ts
  server/cluster/supervisor.ts         → ../lifecycle/pool.ts
  server/cluster/forker.ts             → ../../workers/protocol.ts
  server/app/app.ts                    → ../../db/history.ts
  server/app/cluster.ts                → ../cluster/supervisor.ts
  server/host/master.ts                → ../app/app.ts
  server/command-line.ts               → ./cli/commands.ts
  server/cli/find-master.ts            → ../errors.ts
  server/cli/start.ts                  → ../host/master.ts
  server/crashes/page.ts               → ../dashboard/markup.ts, ./api.ts
  server/crashes/cli.ts                → ../cli/actions.ts
`, '→')

const TYPES = rows(`
  server/api/endpoint.ts        → ../admin/guard.ts             → may not
  server/events/recorder.ts     → ../../db/history.ts           → may not
  server/system/posix.ts        → ../cluster/sticky-program.ts  → may not
  public/notifications.ts       → ../server/alerts/page-alarms.ts → may not
  server/fleet/deck-adapter.ts  → ../deck.ts                    → may not
  server/admin/sessions.ts      → ../api/roles.ts               → may
  db/events.ts                  → ../server/events/stream.ts    → may
  public/fleet.ts               → ./format.ts                   → may
`, '→')

for (const [file, specifiers, because] of FORBIDDEN) {
  test(`${file} may not import ${specifiers}: ${because}`, () => {
    for (const specifier of specifiers.split(', ')) {
      for (const text of [`import '${specifier}'`, `export * from '${specifier}'`,
        `const some = await import('${specifier}')`])
      {
        assert.match(complaintsAbout(file, text).join(), new RegExp(`^${file} may not .*${specifier}: .*${because}`),
          text)
      }
    }
  })
}

for (const [file, specifier, may] of TYPES) {
  test(`${file} ${may} know a type of ${specifier}`, () => {
    for (const text of [`import type { Some } from '${specifier}'`, `export type { Some } from '${specifier}'`,
      `type Some = typeof import('${specifier}')`])
    {
      assert.equal(complaintsAbout(file, text).length, may === 'may' ? 0 : 1, text)
    }
  })
}

test('a new room needs a place in the order of types', () => {
  assert.deepEqual(complaintsAbout('server/new-room/some.ts', ''), ['server/new-room/some.ts has no place in ORDER'])
})

test('files may import what the rooms allow', () => {
  for (const [file, specifiers] of ALLOWED)
    for (const each of specifiers.split(', ')) assert.deepEqual(complaintsAbout(file, `import '${each}'`), [], file)
})

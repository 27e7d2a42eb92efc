import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { tellHostService } from '../../../server/systemd/host-service.ts'
import { fake } from '../../support/fake.ts'

mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })

/** `states`: by name */
function setUp (states: Record<string, string>, env = { NOTIFY_SOCKET: '/run/none' }) {
  const told: string[] = []
  let look = () => {}
  const apps = {
    all: () =>
      Object.entries(states).map(([name, state]) => ({ name, state,
        record: { wish: state === 'removed' ? 'stopped' : 'running' } })
      ),
    onChange: (handler: () => void) => {
      look = handler
      return () => {}
    }
  }
  const service = tellHostService({ apps, keeper: { isKept: false, onLost () {} } }, { env, notify: (message) => {
    told.push(message)
  } })
  return { told, service, change: (changed: Record<string, string>) => {
    Object.assign(states, changed)
    look()
  } }
}

test('is ready once each app runs or has failed, and says which have', () => {
  const { told, change, service } = setUp({ shop: 'starting', mail: 'starting' })
  assert.deepEqual(told, ['STATUS=0 of 2 apps run'])
  change({ shop: 'running' })
  change({ mail: 'failed' })
  assert.deepEqual(told.slice(1), ['STATUS=1 of 2 apps run', 'STATUS=1 of 2 apps run; failed: mail', 'READY=1'])
  service.tellStopping()
  assert.match(String(told.at(-1)), /^STOPPING=1\nEXTEND_TIMEOUT_USEC=\d+$/)
  service.end()
})

test('an app that never gets ready does not keep the host from being so', () => {
  const { told, service } = setUp({ shop: 'running', loop: 'starting' })
  mock.timers.tick(20_000)
  assert.deepEqual(told, ['STATUS=1 of 2 apps run', 'READY=1'])
  service.end()
})

test('a host without apps is ready at once; nothing is told where nobody asks', () => {
  const empty = setUp({})
  assert.deepEqual(empty.told, ['STATUS=0 of 0 apps run', 'READY=1'])
  empty.service.end()
  assert.deepEqual(setUp({ shop: 'running' }, fake({})).told, [])
})

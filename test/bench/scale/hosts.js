import { startAdmin } from '../../support/admin.js'
import { afterTurnsOf, aMember, aRollout, createFakeFleet } from '../../support/fake-fleet.js'
import { visitPage } from './page.js'

const TURNS = 20

/** What a master does for all hosts of its fleet. @type {Readonly<Record<string, import('./measure.js').Part>>} */
export const HOST_PARTS = Object.freeze({
  page: { title: 'the page of the fleet', unit: 'host', open: pageOf('/fleet') },
  rolling: { title: 'the same in the middle of a rollout', unit: 'host', open: pageOf('/fleet', (names) => ({ rollout: afterTurnsOf(aRollout(names), ...names.slice(0, names.length / 2)) })) },
  api: { title: 'the fleet by the API', unit: 'host', open: pageOf('/api/v1/fleet') },
  turn: {
    title: 'one turn of a rollout: reading and writing its document',
    unit: 'host',
    open (n) {
      const names = namesOf(n)
      const text = JSON.stringify(afterTurnsOf(aRollout(names), ...names.slice(1)))
      return {
        times: TURNS,
        bytes: () => text.length,
        run () { for (let turn = 0; turn < TURNS; turn++) JSON.stringify(afterTurnsOf(JSON.parse(text), names[0])) }
      }
    }
  }
})

/** @param {string} path @param {(names: string[]) => Parameters<typeof createFakeFleet>[0]} [more] @returns {import('./measure.js').Part['open']} */
function pageOf (path, more = () => ({})) {
  return async (n, owner) => {
    const admin = await startAdmin(/** @type {any} */ (owner))
    const names = namesOf(n)
    admin.deck.fleet = createFakeFleet({ members: names.map((member, index) => aMember({ member, isOwn: index === 0 })), ...more(names) })
    return visitPage(admin, path)
  }
}

/** @param {number} n */
function namesOf (n) {
  return Array.from({ length: n }, (_, index) => `host-${String(index + 1).padStart(4, '0')}`)
}

import { startAdmin } from '../../support/admin.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet } from '../../support/fake-fleet.ts'
import { visitPage } from './page.ts'
import type { Part } from './measure.ts'

const TURNS = 20

/** What a master does for all hosts of its fleet. */
export const HOST_PARTS: Readonly<Record<string, Part>> = Object.freeze({
  page: { title: 'the page of the fleet', unit: 'host', open: pageOf('/fleet') },
  rolling: { title: 'the same in the middle of a rollout', unit: 'host',
    open: pageOf('/fleet',
      (names) => ({ rollout: afterTurnsOf(aRollout(names), ...names.slice(0, names.length / 2)) })) },
  api: { title: 'the fleet by the API', unit: 'host', open: pageOf('/api/v1/fleet') },
  turn: { title: 'one turn of a rollout: reading and writing its document', unit: 'host', open (n) {
    const names = namesOf(n)
    const text = JSON.stringify(afterTurnsOf(aRollout(names), ...names.slice(1)))
    return { times: TURNS, bytes: () => text.length, run () {
      for (let turn = 0; turn < TURNS; turn++) JSON.stringify(afterTurnsOf(JSON.parse(text), names[0]))
    } }
  } }
})

function pageOf (path: string,
  more: (names: string[]) => Parameters<typeof createFakeFleet>[0] = () => ({})): Part['open']
{
  return async (n, owner) => {
    const admin = await startAdmin(owner)
    const names = namesOf(n)
    admin.deck.fleet = createFakeFleet({ members: names.map((member, index) => aMember({ member, isOwn: index === 0 })),
      ...more(names) })
    return visitPage(admin, path)
  }
}

function namesOf (n: number) {
  return Array.from({ length: n }, (_, index) => `host-${String(index + 1).padStart(4, '0')}`)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsTurn, type Plan } from '../../../server/lifecycle/rollout/turn.ts'
import { fake } from '../../support/fake.ts'
import { stories } from '../../support/stories.ts'
import type { Rollout } from '../../../server/lifecycle/state.ts'
import type { RolloutStep } from '../../../server/api/shapes.ts'

const DEPLOY = 'deploy unprepared in-turn source={"path":"/srv/next"}'
/** A rollout that other apps come before. */
const waiting = (order: string) => `2 workers; ${order}; rollout-waits rollout=1 apps=["shop","mail"]`
const COME = 'rollout-turn-came rollout=1'

stories('a rollout that waits for its turn', `
says whom it waits for, and nothing of it begins or runs out of time; then it goes on as any other
  ${waiting(DEPLOY)}  | take-turn rollout=1; rollout.step "waits for its turn: shop and mail are being rolled out"
    | rollout = preparing; rollout.waitingFor = shop mail; rollout.progress = {"total":2,"replaced":0}; rollout.plan = none
    | no prepare-release; no progress:0
  ${COME}        | prepare-release source.path=/srv/next; rollout.waitingFor = none; rollout.step "its turn has come"
  prepared r2    | progress:0
  settle         | release = r2
says nothing of that where its turn comes at once
  2 workers; restart in-turn; ${COME}  | rollout.steps.length = 2; 1 x rollout.started; no rollout.step "…turn…"
is aborted without having begun, and a turn that comes late begins nothing
  ${waiting(DEPLOY)}; abort            | rollout = none; rollout.rolled-back detail.waitingFor=none "aborted by api"
  ${COME}; rollout-waits rollout=1 apps=["shop"]  | rollout = none; no prepare-release; [1 ready] [2 ready]
is aborted without having begun, also a restart
  ${waiting('restart in-turn')}; abort  | rollout = none; rollout.rolled-back detail.waitingFor=none "aborted by api"
  ${COME}; rollout-waits rollout=1 apps=["shop"]  | rollout = none; [1 ready] [2 ready]
may be paused meanwhile, and then begins nothing that the pause forbids
  ${waiting('restart in-turn')}; pause; ${COME}  | rollout = paused; rollout.pausedIn = rolling; [1 ready] [2 ready]
  resume; settle  | [3 ready] [4 ready]
is one of the slots that there were when it was asked for, if it is a restart
  ${waiting('restart in-turn')}; scale 3; settle; ${COME}; settle  | rollout = none; [4 ready] [5 ready] [3 ready]
waits for nobody if it is a rollback
  2 workers; rollback r0 source={"release":"r0"} unprepared in-turn  | prepare-release source.release=r0; no take-turn; rollout.waitingFor = none
waits for nobody if it restarts one worker
  2 workers; 1 restarted  | rollout = rolling; no take-turn
begins at once where the guard has seen a crash loop, so that no other app keeps that from going back
  2 workers with a guard; deploy; settle; restart in-turn; rollout-waits rollout=2 apps=["shop"]; crash-loop 8
    | guard = tripped; rollout = rolling; rollout.waitingFor = none
`)

test('a rollout leaves its turn to others once it only waits: for old workers, its canary, an operator; or where it is over', () => {
  const rollout = fake<Rollout>({ id: 1, plan: null, canaryEndsAt: null, pausedAt: null, steps: [],
    progress: { total: 2, replaced: 0 } })
  const steps = fake<RolloutStep[]>([{}, {}])
  assert.equal(needsTurn(rollout, 1), true)
  assert.equal(needsTurn({ ...rollout, steps, progress: { total: 2, replaced: 1 } }, 1), true)
  assert.equal(needsTurn({ ...rollout, plan: fake<Plan>({}), pausedAt: 'now' }, 1), true,
    'a pause does not take it out of the row')
  for (const [what, other] of Object.entries({
    'only drains': { ...rollout, steps, progress: { total: 2, replaced: 2 } },
    'compares its canary': { ...rollout, canaryEndsAt: 'soon' },
    'is paused or held': { ...rollout, pausedAt: 'now' },
    'is another one': { ...rollout, id: 2 },
    'is over': null
  })) assert.equal(needsTurn(other, 1), false, what)
})

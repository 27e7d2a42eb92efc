import { stories } from '../../support/stories.ts'
import type { Simulation } from '../../support/simulation.ts'
import type { Drift } from '../../../server/lifecycle/state.ts'

const drift = (kind: Drift['kind'], count: number, ...files: string[]): Record<string, Drift> => ({
  r1: { kind, count, files, since: '2026-01-01', by: null }
})
const DRIFT = drift('code', 7, '/srv/r1/a.js', '/srv/r1/b.js')
const DRIFTS = { 'files change': DRIFT, 'its folder changes': drift('folder', 3, '.next/BUILD_ID', 'app.db'),
  'nothing is known': drift('unknown', 0) }
const acts = Object.fromEntries(Object.entries(DRIFTS).map(([what, found]) => [what, (pool: Simulation) => {
  pool.drift = found
}]))
const CHANGED = 'files of r1 changed after its deploy: /srv/r1/a.js, /srv/r1/b.js and 5 more'

/** what has a worker forked, and on which slot */
const FORKED_BY = { 'a death': '1 exits SIGKILL', 'an exception': '1 crashing', 'a hang': '1 silent',
  'an operator\'s kill': '1 killed', recycling: '1 due', 'a restart of one': '1 restarted', 'a scale-up': 'scale 3' }

stories('a release that has drifted', `${
  Object.entries(FORKED_BY).map(([name, act]) => `
marks the worker that is forked after ${name}
  2 workers         | no worker.drifted
  files change; ${act}  | worker.drifted 3 release=r1 detail.count=7 "worker 3 (slot ${
    name === 'a scale-up' ? 3 : 1
  }) does not run what r1 was: ${CHANGED}"
  settle            | drifted = 3`).join('')
}
marks all workers of a restart, and none of a deploy
  2 workers; files change; restart; settle  | [3 ready drifted] [4 ready drifted]
  deploy; settle    | [5 ready r2] [6 ready r2]
marks a replacement that comes after a backoff by what is so then
  1 worker; 1 exits 1; 2 exits 1  | [backoff]
  files change; next  | [3 starting drifted]; view.workers.0.driftedSince = 2026-01-01
`, { acts })

const CAVEAT =
  'r1 may not be what it was: 3 files of its folder have changed since its deploy: .next/BUILD_ID, app.db and 1 more'
const NOT_KNOWN = 'r1 may not be what it was: it is not known whether files of its folder have changed since its deploy'

stories('a release of whose folder other files have changed', `${
  ['policy always', 'hold on drift'].map((option) => `
comes back after a failed deploy, which says so, with ${option}
  2 workers with ${option}; deploy; 3 ready; its folder changes; settle r1  | slots = r1 r1
    | rollout.rolled-back release=r2 "…; ${CAVEAT}"
comes back after a failed deploy, which says that it is not known, with ${option}
  2 workers with ${option}; deploy; 3 ready; nothing is known; settle r1    | slots = r1 r1
    | rollout.rolled-back release=r2 "…; ${NOT_KNOWN}"`).join('')
}
says nothing of it where no slot goes back
  2 workers; its folder changes; deploy; settle r1  | rollout.failed detail.warnings.length=0 "worker 3 (slot 1) exited with code 1 before it was ready"
can be rolled back to, with a warning
  2 workers; deploy; settle; its folder changes; rollback r1 source={"release":"r1"} unprepared; prepared r1; settle
    | release = r1; rollout.succeeded detail.warnings="${CAVEAT}" "${CAVEAT}"
marks its next workers
  1 worker with hold on drift; its folder changes; 1 exits SIGKILL
    | worker.drifted 2 "worker 2 (slot 1) may not run what r1 was: 3 files of its folder have changed since its deploy: .next/BUILD_ID, app.db and 1 more"
  settle            | [2 ready drifted]
marks no worker where nothing is known
  1 worker with hold on drift; nothing is known; 1 exits SIGKILL; settle  | [2 ready]; no worker.drifted
`, { acts, starts: { 'policy always': {} } })

/** what ends worker 1 */
const ENDED_BY = { 'a death': '1 exits SIGKILL', 'an exception': '1 crashing; 1 exits 1', 'a hang': '1 silent; settle',
  'an operator\'s kill': '1 killed; settle' }
const DRIFTED = '2 workers with hold on drift; files change'

stories('releases.onDrift: hold', `${
  Object.entries(ENDED_BY).map(([name, end]) => `
holds the slot after ${name}, until the files are back
  ${DRIFTED}; ${end}  | [held drifted] [2 ready]; slot.held slot=1 release=r1 detail.count=7
    | view.workers.0.driftedSince = 2026-01-01
  next; next; next  | after 6 s; 1 x slot.held
  restore; next     | slot.resumed slot=1
  settle            | [3 ready] [2 ready]; state.slots.0.blocked = none`).join('')
}
is ended by a deploy
  ${DRIFTED}; 1 exits 1; deploy; settle     | [3 ready r2] [4 ready r2]; no retry:1; state.slots.0.blocked = none
    | rollout.succeeded release=r2
leaves the slot waiting after a deploy that fails
  ${DRIFTED}; 1 exits 1; deploy; settle r1  | [held drifted] [2 ready]; retry:1; rollout.failed release=r2
makes a scale-up wait, and a scale-down or a stop takes the slot away
  ${DRIFTED}; scale 3    | [1 ready] [2 ready] [held drifted]; retry:3
  scale 2           | [1 ready] [2 ready]; no retry:3
  1 exits 1; stop; settle  | isFinished = true
refuses a restart, and says why
  ${DRIFTED}; restart      | refused drifted "…${CHANGED} (option releases.onDrift: hold); deploy, or restore them…"; [1 ready] [2 ready]
refuses the restart of one, and says why
  ${DRIFTED}; 1 restarted  | refused drifted "…${CHANGED} (option releases.onDrift: hold); deploy, or restore them…"; [1 ready] [2 ready]
refuses an upgrade, and says why
  ${DRIFTED}; upgrade      | refused drifted "…${CHANGED} (option releases.onDrift: hold); deploy, or restore them…"; [1 ready] [2 ready]
does not begin to recycle, says so once, and does it when the files are back
  ${DRIFTED}; 1 due | [1 ready] [2 ready]; worker.recycle-failed 1 "worker 1 (slot 1) is not recycled: files of r1 changed…"
  deadline-passed deadline=recycle id=0; deadline-passed deadline=recycle id=0  | 1 x worker.recycle-failed
  restore; deadline-passed deadline=recycle id=0; settle  | [3 ready] [2 ready]
`, { acts })

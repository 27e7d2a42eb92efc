/**
 * Shows how a script does what a dialog does: by the API and on the command line.
 * `operation`: its name in the API; for a member, in the API of that member
 */
type Call = import('../../public/command-text.ts').Call & { operation: string }

const ROLLOUTS = Object.freeze({ operation: 'startRollout', method: 'POST', path: '/api/v1/rollouts' })

const STRATEGY = Object.freeze({ surge: '{surge:option}',
  canary: { workers: '{canary:json}', durationMs: '{canaryMs:json}' }, onFailure: '{onFailure}' })
const STRATEGY_FLAGS = Object.freeze(['--note', '{note}', '--surge', '{surge}', '--canary', '{canary}', '--canary-time',
  '{canaryMs}ms', '--on-failure', '{onFailure}'])

const FLEET_ROLLOUT = Object.freeze({ operation: 'startFleetRollout', method: 'POST', path: '/api/v1/fleet/rollout' })
const FLEET_PLAN = Object.freeze({ batch: '{batch:option}', pauseMs: '{pauseMs:json}', order: '{order}',
  canary: '{canary}' })
const FLEET_FLAGS = Object.freeze(['--batch', '{batch}', '--pause', '{pauseMs}ms', '--order', '{order}', '--canary',
  '{canary}'])
const FLEET_FAILURE = Object.freeze(['--on-failure', '{onFailure}'])

/** by the name of the action */
const OWN_CALLS: Readonly<Record<string, Call>> = Object.freeze({
  restart: { ...ROLLOUTS, body: { kind: 'restart' }, cli: ['restart'] },
  deploy: { ...ROLLOUTS, body: { kind: 'deploy', note: '{note}', strategy: STRATEGY },
    cli: ['deploy', ...STRATEGY_FLAGS] },
  'deploy-commit': { operation: 'deployCommit', method: 'POST', path: '/api/v1/releases', needs: ['git'],
    body: { git: '{git}', guess: '{guess:json}', note: '{note}', strategy: STRATEGY },
    cli: ['deploy', '--git', '{git}', ...STRATEGY_FLAGS] },
  rollback: { ...ROLLOUTS, body: { kind: 'rollback', release: '{release}', note: '{note}' },
    cli: ['rollback', '{release}', '--note', '{note}'] },
  scale: { operation: 'setScale', method: 'PUT', path: '/api/v1/scale', body: { workers: '{workers:json}' },
    cli: ['scale', '{workers}'] },
  'abort-rollout': { operation: 'abortRollout', method: 'POST', path: '/api/v1/rollouts/{rollout}/abort',
    cli: ['abort'] },
  'promote-rollout': { operation: 'promoteRollout', method: 'POST', path: '/api/v1/rollouts/{rollout}/promote',
    cli: ['promote'] },
  'fleet-deploy': { ...FLEET_ROLLOUT, body: { kind: 'deploy', note: '{note}', ...FLEET_PLAN, onFailure: '{onFailure}' },
    cli: ['fleet', 'deploy', '--note', '{note}', ...FLEET_FLAGS, ...FLEET_FAILURE] },
  'fleet-restart': { ...FLEET_ROLLOUT, body: { kind: 'restart', ...FLEET_PLAN },
    cli: ['fleet', 'restart', ...FLEET_FLAGS] },
  'fleet-rollback': { ...FLEET_ROLLOUT,
    body: { kind: 'rollback', note: '{note}', ...FLEET_PLAN, onFailure: '{onFailure}' },
    cli: ['fleet', 'rollback', '--note', '{note}', ...FLEET_FLAGS, ...FLEET_FAILURE] },
  'fleet-resume': { operation: 'resumeFleetRollout', method: 'POST', path: '/api/v1/fleet/rollout/resume',
    cli: ['fleet', 'resume'] },
  'fleet-abort': { operation: 'abortFleetRollout', method: 'POST', path: '/api/v1/fleet/rollout/abort',
    cli: ['fleet', 'abort'] },
  'restart-worker': { operation: 'restartWorker', method: 'POST', path: '/api/v1/workers/{worker}/restart' },
  'kill-worker': { operation: 'killWorker', method: 'POST', path: '/api/v1/workers/{worker}/kill',
    cli: ['kill', '{worker}'] },
  'end-connections': { operation: 'endWorkerConnections', method: 'POST',
    path: '/api/v1/workers/{worker}/end-connections', cli: ['end-connections', '{worker}'] },
  diagnose: { operation: 'startDiagnostics', method: 'POST', path: '/api/v1/workers/{worker}/diagnostics',
    body: { kind: '{kind}' }, cli: ['diagnose', '{worker}', '--kind', '{kind}'] },
  message: { operation: 'sendMessage', method: 'POST', path: '/api/v1/messages',
    body: { type: '{type}', data: '{data:json}' }, cli: ['send', '{type}', '{data}'] },
  'message-to-worker': { operation: 'sendMessageToWorker', method: 'POST', path: '/api/v1/workers/{worker}/messages',
    body: { type: '{type}', data: '{data:json}' }, cli: ['send', '{type}', '{data}', '--worker', '{worker}'] },
  configure: { operation: 'changeConfig', method: 'PATCH', path: '/api/v1/config', headers: { 'If-Match': '"{tag}"' },
    body: { '{name}': '{value:option}' }, cli: ['config', 'set', '{name}={value}'] }
})

/** Actions that also exist for another member of the fleet, on its page. */
export const MEMBER_ACTIONS: readonly ('restart' | 'scale' | 'restart-worker' | 'kill-worker')[] = Object.freeze([
  'restart',
  'scale',
  'restart-worker',
  'kill-worker'
])

/** by the name of the action */
export const CALLS: Readonly<Record<string, Call>> = Object.freeze({ ...OWN_CALLS,
  ...Object.fromEntries(MEMBER_ACTIONS.map((action) => [`member-${action}`, onMember(OWN_CALLS[action])])) })

function onMember ({ path, cli, ...call }: Call): Call {
  return { ...call, path: path.replace('/api/v1', '/api/v1/fleet/members/{member}/api'),
    ...(cli && { cli: [...cli, '--member', '{member}'] }) }
}

/** `actions`: the dialog shows the first one whose path can be filled in @returns for an attribute */
export function callsText (...actions: string[]): string {
  return JSON.stringify(actions.map((action) => CALLS[action]))
}

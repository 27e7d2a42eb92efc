import { configFileOf } from '../config/config.ts'
import { figuresOf } from '../words/figures.ts'
import { countOpen } from '../words/health.ts'
import type { AppView } from './api-apps.ts'
import type { HostedApp } from './hosted-app.ts'
import type { App } from '../app/app.ts'
import type { Deck } from '../deck.ts'

export function viewOf (
  { name, state, reason, isRetried, nextTryAt, order, dataDir, config, part }: HostedApp
): AppView {
  return { name, state, reason, isRetried, nextTryAt, entry: config?.entry ?? null, cwd: config?.cwd ?? order.cwd,
    configFile: (config && configFileOf(config)) ?? order.config ?? null, dataDir, path: `/apps/${name}`,
    ...part ? viewOfPart(part.app) : NO_FIGURES }
}

/** What is shown of an app that does not run. */
const NO_FIGURES = Object.freeze({ startedAt: null, health: null, workers: null, cpu: null, memoryBytes: null,
  requestsPerSecond: null, p99Ms: null, restarts: null, openCrashes: null, release: null, lastDeploy: null,
  addresses: [] })

function viewOfPart ({ deck }: App) {
  const status = deck.snapshot()
  const { tone, text, hint } = deck.health(status)
  return { startedAt: status.master.startedAt, health: { tone, text, hint },
    workers: { ready: status.readyWorkers + status.finishedWorkers, desired: status.desiredWorkers },
    ...figuresOf(status.workers), openCrashes: countOpen(deck.crashes), release: status.release.id,
    lastDeploy: lastDeployOf(deck), addresses: status.app.addresses }
}

function lastDeployOf (deck: Deck) {
  const [newest] = deck.releases.list({ limit: 1 }).items
  return newest ? { state: newest.outcome ?? 'running', release: newest.id, finishedAt: newest.deployedAt } : null
}

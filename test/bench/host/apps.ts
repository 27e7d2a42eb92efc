import path from 'node:path'
import { FIXTURES } from '../../support/deck.ts'
import { freePort } from '../../support/ports.ts'

/** An app as each of those that are compared is told of it. */
type App = {
  /** of test/fixtures */
  script: string,
  workers: number,
  /** where it answers; null: nowhere */
  port: number | null,
  /** it is there once it answers at its port */
  isServing: boolean,
  /** it is never idle */
  isRestless: boolean,
  /** nobody can start it */
  isWrong: boolean,
  args: string[],
  /** options of clusterdeck */
  deck: Record<string, unknown>,
  /** options of PM2 */
  pm2: Record<string, unknown>
}
type Told =
  & Partial<App>
  & { script: string }
/** by name */
export type Apps = Record<string, App>

/** An app that waits longer after each end, as clusterdeck lets it. */
const BACKS_OFF = { exp_backoff_restart_delay: 100 }

/** One of each kind. `full`: nothing can be written there. */
const twelve = ({ full, place }: { full: string, place: string }): Record<string, Told> => ({
  hello: { script: 'listens-on-port.js', isServing: true },
  express: { script: 'compared-app.cjs', isServing: true },
  queue: { script: 'works-through-a-queue.js', deck: { ready: { signal: 'online' } } },
  cron: { script: 'does-a-job.js', args: [path.join(place, 'begun')],
    deck: { restart: { policy: 'never', cron: '0 * * * *' } }, pm2: { autorestart: false, cron_restart: '0 * * * *' } },
  loop: { script: 'throws-at-load.js', isRestless: true, pm2: BACKS_OFF },
  flood: { script: 'floods-its-log.js', isRestless: true },
  sticky: { script: 'listens-on-port.js', isServing: true, workers: 2, deck: { dispatch: 'sticky' } },
  standby: { script: 'listens-on-port.js', isServing: true, workers: 2, deck: { standby: 1 } },
  unready: { script: 'never-listens.js', deck: { ready: { signal: 'listening' } },
    pm2: { wait_ready: true, listen_timeout: 30_000 } },
  eight: { script: 'listens-on-port.js', isServing: true, workers: 8 },
  wrong: { script: 'listens-on-port.js', isWrong: true, deck: { drain: { deadlineMs: 'soon' } } },
  full: { script: 'listens-on-port.js', isServing: true, deck: { dataDir: path.join(full, 'data') },
    pm2: { out_file: path.join(full, 'out.log'), error_file: path.join(full, 'error.log') } }
})

export const SETS: Record<string,
  { title: string, apps: (folders: { full: string, place: string }) => Record<string, Told> }> = Object.freeze({
    one: { title: 'One small app', apps: () => smallApps(1) },
    small: { title: 'Twelve small apps', apps: () => smallApps(12) },
    twelve: { title: 'Twelve apps of all kinds', apps: twelve }
  })

/** `prefix`: of their names */
export function smallApps (count: number, prefix: string = 'app'): Record<string, Told> {
  return Object.fromEntries(
    Array.from({ length: count },
      (_, index) => [`${prefix}-${index + 1}`, { script: 'listens-on-port.js', isServing: true }])
  )
}

/** @returns with a port for each */
export async function placeApps (told: Record<string, Told>): Promise<Apps> {
  const placed = []
  for (const [name, app] of Object.entries(told))
    placed.push([name, { workers: 1, isServing: false, isRestless: false, isWrong: false, args: [], deck: {}, pm2: {},
      ...app, port: await freePort() }])
  return Object.fromEntries(placed)
}

/** `apps`: what clusterdeck.config.json says of them */
export function deckConfig (apps: Apps) {
  return { admin: { port: 0 },
    apps: Object.fromEntries(
      Object.entries(apps).map((
        [name, { script, workers, port, args, deck }]
      ) => [name, { entry: path.join(FIXTURES, script), workers, args, env: { PORT: String(port) }, ...deck }])
    ) }
}

/** `apps`: what PM2 is told of them */
export function pm2Config (apps: Apps, cwd: string) {
  return {
    apps: Object.entries(apps).filter(([, { isWrong }]) => !isWrong).map((
      [name, { script, workers, port, args, pm2 }]
    ) => ({ name, script: path.join(FIXTURES, script), cwd, args,
      ...(workers > 1 && { exec_mode: 'cluster', instances: workers }), env: { PORT: String(port) }, ...pm2 })
    )
  }
}

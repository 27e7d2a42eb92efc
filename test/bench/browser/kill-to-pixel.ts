// From the SIGKILL of a worker of a real deck until a browser has painted that it died, and until it has painted the
// worker that replaced it: node build/run.js test/bench/browser/kill-to-pixel.ts [kills]
import os from 'node:os'
import { openBrowser, untilLive } from '../../support/browser.ts'
import { startDeck } from '../../support/deck.ts'
import { createOwner } from '../../support/owner.ts'
import { present } from '../../support/present.ts'
import { printTable } from '../figures.ts'

declare global {
  interface Window {
    painted: Promise<number[]>
  }
}

const KILLS = Number(process.argv[2] ?? 40)
const WORKERS = 4
/** Of the policy that lets a slot wait for longer the more often it dies. */
const REST_MS = 1500

const owner = createOwner()
const browser = await openBrowser()
const deck = await startDeck(owner, 'hello.js', { workers: WORKERS,
  flags: ['--restart-intensity-restarts', '1000', '--restart-min-delay-ms', '0'] })
await deck.until({ ready: WORKERS })
const page = await browser.page()
await page.goto(await deck.signInLink())
await untilLive(page)
const toDeath: number[] = []
const toNext: number[] = []
for (let kill = 0; kill < KILLS; kill++) {
  const { workers } = await deck.until({ ready: WORKERS })
  const { id, pid } = workers[kill % WORKERS]
  await watchFor(`Worker ${id} `, `Worker ${Math.max(...workers.map((worker) => Number(worker.id))) + 1}`)
  const killedAt = Date.now()
  process.kill(present(pid), 'SIGKILL')
  const [died, next] = await page.evaluate(() => window.painted)
  toDeath.push(died - killedAt)
  toNext.push(next - killedAt)
  await page.waitForTimeout(REST_MS)
}
await browser.close()
await owner.end()
console.log(
  `ms after the SIGKILL of one of ${WORKERS} workers, ${KILLS} times; load of the machine ${
    os.loadavg().map((load) => load.toFixed(1)).join(', ')
  } on ${os.availableParallelism()} CPUs\n`
)
printTable([['until it is painted', 'p50', 'p95', 'longest'], ['that it died', ...figuresOf(toDeath)], [
  'which worker is in its place',
  ...figuresOf(toNext)
]])

/** Notes when both texts have been painted, by the clock of the machine. */
async function watchFor (death: string, next: string) {
  await page.evaluate(([death, next]) => {
    const times: number[] = []
    window.painted = new Promise((resolve) => {
      const look = () => {
        const seen = [document.querySelector('#recent')?.textContent?.includes(`${death}(`),
          document.querySelector('#workers')?.querySelector(`[aria-label="${next}"]`) !== null]
        seen.forEach((isThere, index) => {
          if (!isThere || index in times) return
          times[index] = 0
          // The frame after the one in which it is drawn.
          requestAnimationFrame(() =>
            requestAnimationFrame(() => {
              times[index] = Date.now()
              if (times.filter((time) => time > 0).length === 2) resolve(times)
            })
          )
        })
      }
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })
    })
  }, [death, next])
}

function figuresOf (times: number[]): string[] {
  const sorted = times.toSorted((a, b) => a - b)
  return [0.5, 0.95, 1].map((share) => String(sorted[Math.ceil(share * sorted.length) - 1]))
}

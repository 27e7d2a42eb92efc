import assert from 'node:assert/strict'
import { lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { formatBytes } from '../../public/format.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { underLoad } from '../support/deploys.ts'
import { tempFolder, writeFiles } from '../support/folder.ts'
import { untilRunEnds } from '../support/git-app.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository, versionOf, withPackage } from '../support/repository.ts'
import { until } from '../support/until.ts'

/** With `TEST_ALL=1` there are more deploys. `TEST_FILES` is how many files the package has. */
const DEPLOYS = process.env.TEST_ALL ? 20 : 7
const FILES = Number(process.env.TEST_FILES ?? 200)

/** Every third one is broken, in turn in its build, at its start, and a while after. */
const BROKEN: readonly { how: string, what: Parameters<typeof versionOf>[1] }[] = [{ how: 'build',
  what: { build: 'throw new Error(\'does not compile\')' } }, { how: 'start',
  what: { atLoad: 'throw new Error(\'does not start\')' } }, { how: 'crash',
  what: { atLoad: 'setTimeout(() => { throw new Error(\'crashes later\') }, 1500)' } }]

rareTest(
  `${DEPLOYS} deploys of commits under load, every third one broken: no request fails, and the right release serves after each`,
  async (t) => {
    const repository = createRepository()
    const packages = withPackage(repository.folder, FILES)
    repository.commit({ ...versionOf('0'), ...packages })
    writeFiles(repository.folder, { 'dist/built.txt': '0' })
    const dataDir = tempFolder()
    const deck = await startReadyHere(t, path.join(repository.folder, 'app.js'), { workers: 2, dataDir,
      cwd: repository.folder,
      flags: ['--restart-intensity-restarts', '2', '--restart-min-delay-ms', '10', '--releases-keep', '20'] })
    const url = await deck.appUrl()
    const ask = async () => await (await fetch(url, { headers: { connection: 'close' } })).text()
    const tookMs = { all: [] as number[], build: [] as number[] }
    const { failures, total } = await underLoad(t, url, async () => {
      let good = '0'
      for (let n = 1; n <= DEPLOYS; n++) {
        const broken = n % 3 === 0 ? BROKEN[(n / 3 - 1) % BROKEN.length] : null
        repository.commit({ ...versionOf(String(n), broken?.what), ...packages }, `Number ${n}`)
        const startedAt = performance.now()
        const { status, body: run } = await deck.post('/releases', { git: 'main', guess: true })
        assert.equal(status, 202, JSON.stringify(run))
        const ended = await untilRunEnds(deck, run)
        const builtMs = performance.now() - startedAt
        const rollout = ended.rollout === null ? null : await deck.rolloutEnd({ id: ended.rollout })
        if (!broken) good = String(n)
        if (broken?.how === 'build') assert.deepEqual([ended.state, ended.cause], ['failed', 'build-failed'])
        else if (broken?.how === 'start') assert.equal(rollout?.state, 'failed')
        else if (!broken) assert.equal(rollout?.state, 'succeeded', rollout?.reason ?? undefined)
        if (!broken && n > 1) {
          tookMs.all.push(performance.now() - startedAt)
          tookMs.build.push(builtMs)
        }
        await until(async () => {
          const { rollout: running, release, workers } = await deck.status()
          return running === null && release.git?.subject === `Number ${good}` &&
            workers.every((each) => each.release === release.id && each.state === 'ready')
        }, `release of ${good} after the deploy of ${n}`)
        assert.equal(await ask(), good)
      }
    }, { connections: 16, perSecond: 50 })
    const { withLinks, withoutLinks } = diskUsed(path.join(dataDir, 'releases'))
    t.diagnostic(`${total} requests, ${failures.length} failed`)
    t.diagnostic(
      `a deploy with packages that have not changed: ${median(tookMs.all)} ms in all, ${
        median(tookMs.build)
      } ms of that before the rollout`
    )
    t.diagnostic(
      `disk used by ${readdirSync(path.join(dataDir, 'releases')).length} folders: ${
        formatBytes(withLinks)
      }; it would be ${formatBytes(withoutLinks)} without links`
    )
    assert.deepEqual(failures, [])
    assert.ok(withLinks < withoutLinks)
  }
)

function diskUsed (top: string) {
  const seen = new Set()
  let [withLinks, withoutLinks] = [0, 0]
  for (const name of readdirSync(top, { recursive: true, encoding: 'utf8' })) {
    const { ino, blocks } = lstatSync(path.join(top, name))
    withoutLinks += blocks * 512
    if (!seen.has(ino)) withLinks += blocks * 512
    seen.add(ino)
  }
  return { withLinks, withoutLinks }
}

function median (numbers: number[]) {
  return Math.round(numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)])
}

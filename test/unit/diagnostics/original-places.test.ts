import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import ts from 'typescript'
import { toCallTree } from '../../../server/diagnostics/api-call-tree.ts'
import { createSourceMaps } from '../../../server/crashes/source-maps.ts'
import { createDiagnostics } from '../../../server/diagnostics/diagnostics.ts'
import { createMergedProfile, type Profile } from '../../../server/diagnostics/merged-profile.ts'
import { withOriginalPlaces } from '../../../server/diagnostics/original-places.ts'
import { openStore } from '../../../server/diagnostics/store.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import type { Supervisor } from '../../../server/cluster/supervisor.ts'

const SOURCE = `interface Price {
  cents: number
}

export function taxesOf (price: Price): number {
  const until = process.cpuUsage().user + 150_000
  let sum = 0
  while (process.cpuUsage().user < until) for (let n = 0; n < 10_000; n++) sum += Math.sqrt(price.cents)
  return sum
}

globalThis.taxesOf = taxesOf
`
const FUNCTION_LINE = 5
const LOOP_LINE = 8

/** Profiles the function of a file that was made from `src/taxes.ts`. */
async function profileOf (file: string) {
  const merged = createMergedProfile()
  merged.add(await singleProfileOf(file), { from: null, to: null })
  return merged.profile()
}

/** As V8 writes it, of a process of its own: one that has run many tests may get no samples. */
async function singleProfileOf (file: string): Promise<Profile> {
  const place = ['--cpu-prof-dir', path.dirname(file), '--cpu-prof-name', 'taxes.cpuprofile']
  const calls = `await import(${JSON.stringify(pathToFileURL(file).href)}); globalThis.taxesOf({ cents: 5 })`
  await promisify(execFile)(process.execPath, ['--cpu-prof', ...place, '--input-type=module', '--eval', calls])
  return JSON.parse(readFileSync(path.join(path.dirname(file), 'taxes.cpuprofile'), 'utf8'))
}

function newFolder () {
  const folder = realpathSync(tempFolder())
  mkdirSync(path.join(folder, 'src'))
  mkdirSync(path.join(folder, 'dist'))
  writeFileSync(path.join(folder, 'src', 'taxes.ts'), SOURCE)
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

function hottest (profile: Profile, folder: string) {
  const original = withOriginalPlaces(profile, folder, createSourceMaps())
  const { name, place } =
    toCallTree(original, { folder }).functions.filter(({ path: whole }) => whole.startsWith(folder)).sort((one,
      other) => other.totalMs - one.totalMs
    )[0]
  const node = original.nodes.find(({ callFrame }) => callFrame.functionName === name)
  return { name, place, lines: node?.positionTicks.map(({ line }) => line) ?? [] }
}

test('what TypeScript has made is shown by function and line of its source, with the map inside of the file or beside it', async () => {
  for (const option of ['inlineSourceMap', 'sourceMap'] as const) {
    const folder = newFolder()
    const { outputText, sourceMapText } = ts.transpileModule(SOURCE, { fileName: 'taxes.ts',
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, [option]: true,
        removeComments: true } })
    const file = path.join(folder, 'src', 'taxes.js')
    writeFileSync(file, outputText)
    if (sourceMapText) writeFileSync(`${file}.map`, sourceMapText)
    const profile = await profileOf(file)
    const { name, place, lines } = hottest(profile, folder)
    assert.deepEqual([name, place], ['taxesOf', `src/taxes.ts:${FUNCTION_LINE}`])
    assert.ok(lines.includes(LOOP_LINE), `${lines}`)
  }
})

test('what a bundler has put on one line is shown by the line and the name of its source, and no line is guessed inside of it', async () => {
  const folder = newFolder()
  const bundle = await rolldown({ input: path.join(folder, 'src', 'taxes.ts') })
  const file = path.join(folder, 'dist', 'app.js')
  await bundle.write({ file, minify: true, sourcemap: true })
  await bundle.close()
  assert.ok(readFileSync(file, 'utf8').trim().split('\n').length <= 3)
  const { name, place } = hottest(await profileOf(file), folder)
  assert.deepEqual([name, place], ['taxesOf', `src/taxes.ts:${FUNCTION_LINE}`])
})

test('a profile that was asked for has these places in its file too, each sample as it was, and without a map it stays as V8 has written it', async () => {
  for (const isMapped of [true, false]) {
    const folder = newFolder()
    const { outputText } = ts.transpileModule(SOURCE, { fileName: 'taxes.ts',
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, inlineSourceMap: isMapped,
        removeComments: true } })
    const file = path.join(folder, 'src', 'taxes.js')
    writeFileSync(file, outputText)
    const taken = await singleProfileOf(file)
    const { text, bytes } = await askFor(taken, folder)
    const written = JSON.parse(text)
    assert.equal(bytes, Buffer.byteLength(text))
    assert.deepEqual([written.samples, written.timeDeltas, written.nodes.length], [taken.samples, taken.timeDeltas,
      taken.nodes.length])
    const { name, place } = toCallTree(written, { folder }).functions.filter(({ path: whole }) =>
      whole.startsWith(folder)
    ).sort((one, other) => other.totalMs - one.totalMs)[0]
    if (isMapped)
      assert.deepEqual([name, place], ['taxesOf', `src/taxes.ts:${FUNCTION_LINE}`])
    else assert.equal(text, JSON.stringify(taken))
  }
})

/** Takes a CPU profile as an operator does, of a worker that writes this one. `folder`: of its release. */
async function askFor (profile: unknown, folder: string) {
  const events = createEventStream()
  const finished = new Promise((resolve) =>
    events.subscribe(({ type }) => {
      if (type === 'diagnostics.finished') resolve(type)
    })
  )
  let onDiagnosed: (worker: number, reply: { id: number, error: null }) => void = () => {}
  const supervisor = fake<Supervisor>({
    snapshot: () => ({ workers: [{ id: 1, slot: 1, pid: 1, release: 'r1', state: 'ready' }] }),
    excuse () {},
    onDiagnosed (listener) {
      onDiagnosed = listener
    },
    tell (worker, message) {
      const { id, file } = message as { id: number, file: string }
      writeFileSync(file, JSON.stringify(profile))
      setImmediate(() => onDiagnosed(worker, { id, error: null }))
    }
  })
  const store = openStore(tempFolder(), { maxFiles: 1, maxBytes: 1e9 })
  const diagnostics = createDiagnostics({ supervisor, events, store, folderOf: () => folder,
    places: createSourceMaps() })
  const { id } = diagnostics.start({ worker: 1, kind: 'cpu-profile', actor: 'a test' })
  await finished
  return { text: readFileSync(String(diagnostics.file(id, 'a test')?.file), 'utf8'), bytes: diagnostics.get(id)?.bytes }
}

test('a place stays as it is without a map, with a broken one, in a package and outside of the release', () => {
  const folder = newFolder()
  const frame = (url: string) => ({ functionName: 'each', scriptId: '0', url, lineNumber: 0, columnNumber: 0 })
  writeFileSync(path.join(folder, 'dist', 'broken.js'), '1\n//# sourceMappingURL=broken.js.map\n')
  writeFileSync(path.join(folder, 'dist', 'broken.js.map'), '{')
  const urls = ['src/taxes.ts', 'dist/broken.js', 'dist/gone.js', 'node_modules/a/index.js'].map((name) =>
    pathToFileURL(path.join(folder, name)).href
  )
  const nodes = ['', 'node:fs', 'file:///%', 'file:///etc/passwd', ...urls].map((url, index) => ({ id: index + 1,
    callFrame: frame(url), children: [], positionTicks: [] })
  )
  const profile = { nodes, samples: [1], timeDeltas: [0], startTime: 0, endTime: 1 }
  assert.equal(withOriginalPlaces(profile, folder, createSourceMaps()), profile)
})

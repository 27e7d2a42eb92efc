// Every page in every state that a deck can be in, wide and narrow, light and dark: `npm run screenshots`, or
// `npm run screenshots -- --only held,offline,overview`. `--readme` renews the picture of the README.
// Pictures and an index.html go into test/screenshots/.results. What axe finds, and what a page complains of, ends it
// with 1.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { openBrowser } from '../support/browser.ts'
import { createOwner } from '../support/owner.ts'
import { PLACES } from '../support/places.ts'
import { writeIndex } from './album.ts'
import { photograph, type Picture } from './camera.ts'
import { STATES } from './states.ts'

const RESULTS = path.join(import.meta.dirname, '.results')
const README_PICTURES = path.join(import.meta.dirname, '../../.github')

const { only, readme } = parseArgs({ options: { only: { type: 'string' }, readme: { type: 'boolean' } } }).values
const { states, places } = choose(readme ? 'healthy,overview' : only)
rmSync(RESULTS, { recursive: true, force: true })
mkdirSync(RESULTS, { recursive: true })
const browser = await openBrowser()
const pictures: Picture[] = []
const findings: string[] = []
for (const state of states) await take(state)
await browser.close()
writeIndex(RESULTS, pictures)
if (readme) {
  for (const theme of ['light', 'dark'])
    copyFileSync(path.join(RESULTS, `readme-${theme}.png`), path.join(README_PICTURES, `dashboard-${theme}.png`))
}
console.log(`\n${pictures.length} pictures: ${path.relative(process.cwd(), RESULTS)}/index.html`)
for (const finding of findings) console.log(finding)
process.exitCode = findings.length > 0 ? 1 : 0

async function take (state: typeof STATES[number]) {
  if (state.skip) {
    console.log(`${state.name}: skipped, ${state.skip}`)
    return
  }
  const startedAt = performance.now()
  const owner = createOwner()
  try {
    const scene = await state.make(owner)
    const wanted = state.places ?? places.filter(({ isStill }) => !isStill || state.hasStillPages)
    const taken = await photograph({ browser, scene, state: state.name, places: wanted, folder: RESULTS })
    pictures.push(...taken.pictures)
    findings.push(...taken.findings)
    console.log(
      `${state.name}: ${taken.pictures.length} pictures of ${taken.places.join(', ')}, ${
        ((performance.now() - startedAt) / 1000).toFixed(0)
      } s`
    )
  } finally {
    await owner.end()
  }
}

/** `text`: names of states and places; where none of a kind is named, all of them */
function choose (text?: string) {
  const names = text?.split(',') ?? []
  const unknown = names.filter((name) => ![...STATES, ...PLACES].some((each) => each.name === name))
  if (unknown.length > 0) {
    console.error(
      `--only: expected ${[...STATES, ...PLACES].map(({ name }) => name).join(', ')}, received ${unknown.join(', ')}`
    )
    process.exit(2)
  }
  return { states: named(STATES, names), places: named(PLACES, names) }
}

function named<T extends { name: string }> (all: readonly T[], names: string[]): readonly T[] {
  const some = all.filter(({ name }) => names.includes(name))
  return some.length > 0 ? some : all
}

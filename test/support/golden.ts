import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'

/**
 * Golden answers: what somebody would see, in a text that a person has read and found right. It lies in the folder
 * `golden` beside the test. `GOLDEN=write` writes it anew: read it before you commit it.
 */
const IS_WRITTEN = process.env.GOLDEN === 'write'
/** A line that begins a section, or that is only a remark. */
const HEAD = '# '

/** @param place the file of the test */
export function assertGolden (place: ImportMeta, name: string, text: string) {
  const whole = `${text.trimEnd()}\n`
  if (IS_WRITTEN) {
    mkdirSync(new URL('golden/', place.url), { recursive: true })
    writeFileSync(fileOf(place, name), whole)
  }
  assert.equal(whole, readFileSync(fileOf(place, name), 'utf8'), `what is told differs from ${name}.txt`)
}

/** Tells each line of the text anew: what stands before its first ` → ` goes in, what stands behind comes out. */
export async function assertRetold (place: ImportMeta, name: string, tell: (input: string) => unknown) {
  const lines = readFileSync(fileOf(place, name), 'utf8').trimEnd().split('\n')
  assert.ok(lines.length > 3, 'the text has lines')
  const told = []
  for (const line of lines) {
    const [input] = line.split(/\s+→(?: |$)/, 1)
    const isRemark = line === '' || line.startsWith(HEAD)
    told.push(isRemark ? line : `${input} → ${oneLine(await tell(input))}`.trimEnd())
  }
  assertGolden(place, name, told.join('\n'))
}

/** A test for each state, and a section of the text for each: its title, and what is told of it. */
export function testStates<State> (place: ImportMeta, name: string, states: Record<string, State>,
  tell: (state: State, t: TestContext) => string | Promise<string>)
{
  const isNew = IS_WRITTEN && !existsSync(fileOf(place, name))
  const [, ...kept] = `\n${isNew ? '' : readFileSync(fileOf(place, name), 'utf8')}`.split(`\n${HEAD}`)
  const sections = new Map(kept.map((section) => [section.split('\n', 1)[0], section.trimEnd()]))
  const told: string[] = []
  describe(name, () => {
    for (const [title, state] of Object.entries(states)) {
      test(title, async (t) => {
        const lines = ((await tell(state, t)).trim() || 'nothing').split('\n')
        const section = [title, ...lines.map((line) => `  ${line}`.trimEnd())].join('\n')
        told.push(HEAD + section)
        if (!IS_WRITTEN) assert.equal(section, sections.get(title))
      })
    }

    test(`${name}.txt tells of nothing else`, () => {
      if (IS_WRITTEN) assertGolden(place, name, told.join('\n\n'))
      else assert.deepEqual([...sections.keys()].filter((title) => !Object.hasOwn(states, title)), [])
    })
  })
}

function fileOf (place: ImportMeta, name: string) {
  return new URL(`golden/${name}.txt`, place.url)
}

/** As it is, or as JSON where it is no text. */
function oneLine (told: unknown) {
  return typeof told === 'string' ? told.replaceAll('\n', '⏎') : JSON.stringify(told) ?? 'undefined'
}

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

/** by what is written, in which a word of capital letters stands for any word that is handed on */
type Acts<Stage> = Record<string, (stage: Stage, ...words: string[]) => unknown>

/**
 * A test for each title of a text. Below it stand lines: what is done, in its order, and behind → what is seen then.
 * @param scene `see`: gets what is expected, and returns what is there in its place
 */
export function playScenes<Stage> (text: string,
  { open, acts, see }: { open: (t: TestContext, title: string) => Stage, acts: Acts<Stage>,
    see: (stage: Stage, expected: string) => unknown })
{
  const known = Object.entries(acts).map(([words, act]) => ({ act,
    isMeant: new RegExp(`^${words.replace(/\b[A-Z]+\b/g, '(\\S+)')}$`) })
  )
  for (const scene of text.trim().split(/\n(?=\S)/)) {
    const [title, ...lines] = scene.split('\n')
    test(title, async (t) => {
      const stage = open(t, title)
      for (const line of lines) {
        const [done, expected = null] = line.split('→').map((part) => part.trim())
        for (const word of done.split('; ').filter(Boolean)) {
          const { act, isMeant } = known.find((each) => each.isMeant.test(word)) ?? assert.fail(word)
          await act(stage, ...(isMeant.exec(word) ?? []).slice(1))
        }
        if (expected !== null) assert.equal(String(await see(stage, expected)), expected, line)
      }
    })
  }
}

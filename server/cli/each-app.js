import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { jsonText } from './output.js'
import { createPrefixed } from './prefixed.js'

/** @typedef {import('./commands.js').Options} Options */
/** @typedef {import('./commands.js').Tools} Tools */
/** @typedef {import('./targets.js').Target} Target */

/**
 * What a command has come to for one of several apps; `text`: of its result; `code`: its exit code.
 * @typedef {{ target: Target, result: any, text: string | null, error: DeckError | null, code: number }} Outcome
 *
 * @typedef {object} How
 * @property {Options} options
 * @property {import('./program.js').Terminal} terminal
 * @property {(outcomes: Outcome[], tools: { prefixed: import('./prefixed.js').Prefixed, options: Options, env: import('./program.js').Terminal['env'] }) => string} [textOfAll] what is printed for people; default: a line or a block for each
 */

/**
 * Does the same for several apps, side by side. One that fails stops none of the others.
 * @param {readonly Target[]} targets @param {(target: Target, tools: Partial<Tools>) => Promise<number | void>} work @param {How} how
 * @returns {Promise<number>} the exit code: 0 if all have succeeded, else that of the first one that has not
 */
export async function runForEach (targets, work, { options, terminal, textOfAll = blocksOf }) {
  const { stdout, stderr } = terminal
  const prefixed = createPrefixed(targets.map(({ name }) => name), terminal)
  const outcomes = await Promise.all(targets.map(runFor))
  if (options.json && !options.follow) stdout.write(`${jsonText(outcomes.map(({ target: { name: app }, result, error }) => error ? { app, error: { code: error.code, message: error.message } } : { app, result }))}\n`)
  const text = options.json ? '' : textOfAll(outcomes, { prefixed, options, env: terminal.env })
  if (text !== '') stdout.write(`${text}\n`)
  return outcomes.find(({ code }) => code !== 0)?.code ?? 0

  /** @param {Target} target @returns {Promise<Outcome>} */
  async function runFor (target) {
    const { name } = target
    /** @type {Outcome} */
    const outcome = { target, result: null, text: null, error: null, code: 0 }
    try {
      outcome.code = await work(target, {
        print: (text) => { options.json ? stdout.write(`${JSON.stringify({ app: name, ...JSON.parse(text) })}\n`) : prefixed.print(name, text) },
        tell: (text) => prefixed.say(name, text),
        keep: (result) => { outcome.result = result },
        answer (result, textOf) {
          outcome.result = result
          outcome.text = options.json ? null : textOf()
        }
      }) ?? 0
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      outcome.error = error
      outcome.code = error.exitCode
      if (!options.json) stderr.write(`clusterdeck: ${oneLine(error.message.startsWith(`${name} `) ? error.message : `${name}: ${error.message}`)}\n`)
    }
    return outcome
  }
}

/** @param {Outcome[]} outcomes */
function blocksOf (outcomes) {
  const texts = outcomes.flatMap(({ target: { name }, text }) => text === null ? [] : [text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`])
  return texts.join(texts.some((text) => text.includes('\n')) ? '\n\n' : '\n')
}

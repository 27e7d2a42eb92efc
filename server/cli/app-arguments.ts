import { misuse } from './usage.ts'

/**
 * What the arguments of a command may be beside names of apps: a word of that form is it, and any other one names an
 * app.
 */
type Form = { form: RegExp, expected: string, isRequired?: true }
/**
 * The words of a command that has several actions: the first one of these names the action, and what follows is for
 * that.
 */
type Actions = { actions: readonly string[] }
type Other = Form | Actions

const RELEASE = Object.freeze({ form: /^r?\d+$/, expected: 'a release such as r12' })
const GROUP = Object.freeze({ form: /^r?\d+$/, expected: 'the id of a group' })
const ENTRY = Object.freeze({ form: /[/\\]|\.([cm]?[jt]s|[jt]sx)$/, expected: 'a file or folder to start' })
const COUNT = Object.freeze({ form: /^\d+$/, expected: 'an integer from 1 to 256', isRequired: true as const })

/** The commands that take apps: none, one, several, or --all. */
export const TAKES_APPS: Readonly<Record<string, Other | null>> = Object.freeze({ status: null, logs: null,
  history: null, routes: null, crashes: GROUP, doctor: ENTRY, releases: RELEASE, restart: null, deploy: null,
  rollback: RELEASE, scale: COUNT, stop: null, start: null, delete: null, describe: null, run: null,
  jobs: { actions: ['ls', 'run', 'runs', 'end', 'acknowledge', 'pause', 'resume'] } })

/**
 * Returns `names`: of apps, each once; `argument`: of a command with actions, the words from the action on.
 * @throws {DeckError} usage
 */
export function splitArguments (command: string,
  words: readonly string[]): { names: string[], argument: string | string[] | undefined }
{
  const other = TAKES_APPS[command]
  if (other && 'actions' in other) return splitAtAction(other, words)
  const [first, second] = words.filter((word) => other?.form.test(word))
  const names = [...new Set(words.filter((word) => !other?.form.test(word)))]
  if (second !== undefined) throw misuse(command, `${other?.expected} once`, `${first} and ${second}`)
  if (first === undefined && other?.isRequired)
    throw misuse(command, other.expected, words.length === 0 ? 'none' : JSON.stringify(words.join(' ')))
  return { names, argument: first }
}

function splitAtAction ({ actions }: Actions, words: readonly string[]) {
  const index = words.findIndex((word) => actions.includes(word))
  return { names: [...new Set(index === -1 ? words : words.slice(0, index))],
    argument: index === -1 ? undefined : words.slice(index) }
}

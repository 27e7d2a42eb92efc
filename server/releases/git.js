import { spawn } from 'node:child_process'

const PATIENCE_MS = 2000
const MAX_ANSWER_CHARS = 2000
// A folder that is not our own may hold a repository that names programs to run: none of them is wanted here.
const HARMLESS = ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null']
// The rest could point git to another repository, or change what it prints.
const PASSED_ON = ['PATH', 'HOME', 'XDG_CONFIG_HOME']

/** Those that run now, for whoever reaps this process's children. @type {Set<number | undefined>} */
const running = new Set()

/** @param {number} pid */
export const isGit = (pid) => running.has(pid)

/**
 * What is checked out in a folder. Never fails: without git, a checkout or a commit, or where git mistrusts the owner of
 * the repository (`safe.directory`), there is nothing to tell.
 * @param {string} folder
 * @param {{ program?: string, patienceMs?: number }} [options]
 * @returns {Promise<{ commit: string, branch: string | null, isDirty: boolean | null } | null>} `branch`: null where HEAD is
 *   detached; `isDirty`: whether a tracked file was changed, null where that took too long
 */
export async function readGit (folder, { program = 'git', patienceMs = PATIENCE_MS } = {}) {
  const deadline = performance.now() + patienceMs
  const head = await ask(['rev-parse', 'HEAD', '--abbrev-ref', 'HEAD'])
  const [commit = '', branch = ''] = head.code === 0 ? head.text.split('\n') : []
  if (!/^[0-9a-f]{40,64}$/.test(commit)) return null
  const changes = await ask(['status', '--porcelain', '--untracked-files=no'], { isOneByteEnough: true })
  const isDirty = changes.text !== '' ? true : changes.code === 0 ? false : null
  return { commit, branch: branch === 'HEAD' || branch === '' ? null : branch.slice(0, 200), isDirty }

  /**
   * @param {string[]} words @param {{ isOneByteEnough?: boolean }} [how]
   * @returns {Promise<{ code: number | null, text: string }>}
   */
  function ask (words, { isOneByteEnough = false } = {}) {
    return new Promise((resolve) => {
      const env = Object.fromEntries(PASSED_ON.map((name) => [name, process.env[name]]))
      const child = spawn(program, [...HARMLESS, '-C', folder, ...words], {
        stdio: ['ignore', 'pipe', 'ignore'], cwd: '/', env: { ...env, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' }
      })
      const timer = setTimeout(() => end(null), deadline - performance.now())
      let text = ''
      running.add(child.pid)
      child.once('exit', () => running.delete(child.pid))
      child.once('error', () => end(null))
      child.once('close', end)
      child.stdout?.setEncoding('utf8').on('data', (part) => {
        text = (text + part).slice(0, MAX_ANSWER_CHARS)
        if (isOneByteEnough) end(null)
      })

      /** @param {number | null} code */
      function end (code) {
        clearTimeout(timer)
        child.stdout?.destroy()
        child.kill('SIGKILL')
        resolve({ code, text })
      }
    })
  }
}

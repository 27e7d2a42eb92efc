// Formats all sources: npm run format. With --check it changes none, and names those that differ.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createFromBuffer } from '@dprint/formatter'
import { getPath } from '@dprint/typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** What others have written, and apps of tests. */
const AS_IT_IS = /^(test\/(apps\/programs|fixtures|library|programs\/sources)|workers\/demo)/

const STYLE = { semiColons: 'asi', quoteStyle: 'alwaysSingle', quoteProps: 'preserve', trailingCommas: 'never',
  'arrowFunction.useParentheses': 'force', useBraces: 'maintain', singleBodyPosition: 'maintain',
  operatorPosition: 'maintain', 'typeLiteral.separatorKind': 'comma', 'constructor.spaceBeforeParentheses': true,
  'functionDeclaration.spaceBeforeParentheses': true, 'functionExpression.spaceBeforeParentheses': true,
  'getAccessor.spaceBeforeParentheses': true, 'method.spaceBeforeParentheses': true,
  'setAccessor.spaceBeforeParentheses': true, preferSingleLine: true, preferHanging: true,
  'arguments.preferHanging': 'always', 'arrayExpression.preferHanging': 'always', 'parameters.preferHanging': 'always',
  'tupleType.preferHanging': 'always', 'typeParameters.preferHanging': 'always',
  'unionAndIntersectionType.preferSingleLine': false, 'exportDeclaration.sortNamedExports': 'maintain',
  'importDeclaration.sortNamedImports': 'maintain', 'module.sortExportDeclarations': 'maintain',
  'module.sortImportDeclarations': 'maintain' }

const formatter = createFromBuffer(readFileSync(getPath()))
formatter.setConfig({ lineWidth: 120, indentWidth: 2 }, STYLE)
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.js', '*.cjs',
  '*.mjs'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n').filter((file) => !AS_IT_IS.test(file))
for (const file of files) {
  const text = readFileSync(ROOT + file, 'utf8')
  const formatted = formatter.formatText({ filePath: file, fileText: text })
  if (formatted === text) continue
  if (!process.argv.includes('--check')) writeFileSync(ROOT + file, formatted)
  else {
    console.error(`${file} is not formatted: npm run format`)
    process.exitCode = 1
  }
}

// Reads vitest's JSON reports and prints the closing line of .ci/run: "N passed, M failed".
//
//   node scripts/ci-summary.mjs <failed steps> <report.json>...
//
// A failed step and a test file that did not load count as one failure each. A skipped test fails the run as well:
// on CI everything a test needs is installed, so a skip would be a promise that nobody checks. Only tests that compare with
// tables kept beside the repository, and say so in their title, may be left out where those are not.

import fs from 'node:fs'

const [failedSteps, ...reports] = process.argv.slice(2)
let passed = 0
let failed = Number(failedSteps)
const skipped = []

for (const file of reports) {
  if (!fs.existsSync(file)) {
    console.log(`No test report at ${file}: the test runner did not get as far as writing one.`)
    failed++
    continue
  }
  for (const suite of JSON.parse(fs.readFileSync(file, 'utf8')).testResults) {
    const outcomes = suite.assertionResults.map((test) => test.status)
    passed += outcomes.filter((status) => status === 'passed').length
    const failures = outcomes.filter((status) => status === 'failed').length
    failed += failures
    if (suite.status === 'failed' && failures === 0) {
      console.log(`${suite.name} did not load: ${suite.message}`)
      failed++
    }
    for (const test of suite.assertionResults) {
      if (test.fullName.includes('[shared tables]')) continue
      if (test.status !== 'passed' && test.status !== 'failed') skipped.push(`${test.fullName} (${test.status})`)
    }
  }
}

for (const title of skipped) console.log(`Skipped, which CI does not accept: ${title}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && skipped.length === 0 && passed > 0 ? 0 : 1)

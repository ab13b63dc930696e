// Tables of terms as text: separated by tabs, or by commas or semicolons with quotes. Knows strings
// only.

// The rows of a file, those of one cell and empty ones left out; the name tells its kind.
export function readTable(text, name) {
  const plain = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const isTabbed = !/\.csv$/i.test(name);
  const rows = isTabbed ? plain.split("\n").map((line) => line.split("\t")) : quotedRows(plain);
  const trimmed = rows.map((row) => row.map((cell) => cell.trim()).filter(Boolean));
  return trimmed.filter((row) => row.length > 1 && !row[0].startsWith("#"));
}

export function writeTable(rows) {
  return rows.map((row) => `${row.join("\t")}\n`).join("");
}

// Rows of a .csv file: a quote inside quotes is written twice.
function quotedRows(text) {
  const separator = /^[^\n,]*;/.test(text) ? ";" : ",";
  const rows = [[""]];
  let isQuoted = false;
  for (let place = 0; place < text.length; place += 1) {
    const sign = text[place];
    const row = rows.at(-1);
    if (isQuoted && sign === '"' && text[place + 1] === '"') {
      row[row.length - 1] += '"';
      place += 1;
    } else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && sign === separator) row.push("");
    else if (!isQuoted && sign === "\n") rows.push([""]);
    else row[row.length - 1] += sign;
  }
  return rows;
}

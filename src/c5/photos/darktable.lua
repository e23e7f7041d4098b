--[[
c5: white balance for the selected images, in darktable 4.2 and later.

Written by `c5 plugin darktable`, which also removes it. A button "white balance by c5" in the module "selected images"
of the lighttable runs `c5 balance`, and adds what it finds to the history of each image, as a style does: the other
modules stay as they are, and undo takes it back.
]]

local dt = require "darktable"

local COMMAND = @COMMAND@
local STYLE = "white balance by c5"
local MOST = 400 -- images a run: a shell takes no command of any length
local OPERATIONS = { temperature = true, channelmixerrgb = true }
local SEPARATOR = package.config:sub(1, 1)

local c5 = {}

local function quote(text)
  if SEPARATOR == "\\" then
    return '"' .. text .. '"'
  end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("a")
  file:close()
  return text
end

-- The last steps of the modules that deal with the light, in the history of a sidecar.
local function find_steps(sidecar)
  local steps, places = {}, {}
  for item in sidecar:gmatch("<[%w_]+:li%f[%s](.-)>") do
    local step = {}
    for key, value in item:gmatch('[%w_]+:([%w_]+)="([^"]*)"') do
      step[key] = value
    end
    if OPERATIONS[step.operation] then
      local name = step.operation .. " " .. (step.multi_priority or "0")
      places[name] = places[name] or #steps + 1
      steps[places[name]] = step
    end
  end
  return steps
end

local function write_style(path, steps)
  local parts = { '<?xml version="1.0" encoding="UTF-8"?>\n<darktable_style version="1.0"><info><name>' .. STYLE }
  table.insert(parts, "</name><description></description></info><style>")
  for number, step in ipairs(steps) do
    local fields = {
      { "num", number - 1 },
      { "module", step.modversion },
      { "operation", step.operation },
      { "op_params", step.params },
      { "enabled", step.enabled },
      { "blendop_params", step.blendop_params or "" },
      { "blendop_version", step.blendop_version or 0 },
      { "multi_priority", step.multi_priority or 0 },
      { "multi_name", step.multi_name or "" },
    }
    table.insert(parts, "<plugin>")
    for _, field in ipairs(fields) do
      table.insert(parts, ("<%s>%s</%s>"):format(field[1], field[2], field[1]))
    end
    table.insert(parts, "</plugin>")
  end
  table.insert(parts, "</style></darktable_style>\n")
  local file = assert(io.open(path, "wb"))
  file:write(table.concat(parts))
  file:close()
end

local function delete_style()
  for _, style in ipairs(dt.styles) do
    if style.name == STYLE then
      style:delete()
      return
    end
  end
end

-- Add steps to the history of an image.
local function apply(steps, image, path)
  write_style(path, steps)
  delete_style() -- one of a run that was killed
  dt.styles.import(path)
  os.remove(path)
  for _, style in ipairs(dt.styles) do
    if style.name == STYLE then
      dt.styles.apply(style, image)
      style:delete()
      return true
    end
  end
  return false
end

-- Balance images of one folder; how many were, what is wrong with others, and of how many c5 is not sure.
local function balance_folder(images, folder)
  local out = table.concat({ dt.configuration.tmp_dir, SEPARATOR, "c5-", os.time(), "-", math.random(1 << 40) })
  local words, sent = {}, {}
  for _, image in ipairs(images) do -- versions of an image share its file
    local file = folder .. SEPARATOR .. image.filename
    if not sent[file] then
      table.insert(words, quote(file))
      sent[file] = true
    end
  end
  local log = out .. ".log"
  local command = ("%s balance %s --darktable --replace-custom --out %s > %s 2>&1"):format(
    COMMAND, table.concat(words, " "), quote(out), quote(log)
  )
  if SEPARATOR == "\\" then
    command = '"' .. command .. '"' -- cmd takes off the first and the last
  end
  local code = dt.control.execute(command)
  local said = read(log) or ""
  os.remove(log)
  local done, problem = 0, ("\n" .. said):match("\nc5: ([^\r\n]*)")
  for _, image in ipairs(images) do
    local place = out .. SEPARATOR .. image.filename .. ".xmp"
    local sidecar = read(place)
    local steps = sidecar and find_steps(sidecar) or {}
    if #steps > 0 and apply(steps, image, out .. ".dtstyle") then
      done = done + 1
    end
  end
  for file in pairs(sent) do
    os.remove(out .. file:sub(#folder + 1) .. ".xmp")
  end
  os.remove(out)
  if done < #images and not problem then
    problem = "c5 cannot be run (exit status " .. tostring(code) .. "): run c5 plugin darktable again"
  end
  return done, problem, tonumber(said:match("(%d+) uncertain")) or 0
end

-- Say something in darktable's window.
local function tell(message)
  dt.print(message)
  return message
end

-- Balance images, and say what became of them.
function c5.balance(images)
  if #images == 0 then
    return tell("c5: no image is selected")
  end
  local folders, order = {}, {}
  for _, image in ipairs(images) do
    local group = folders[image.path]
    if not group or #group == MOST then
      group = {}
      folders[image.path] = group
      table.insert(order, { image.path, group })
    end
    table.insert(group, image)
  end
  tell(("c5: balancing %d images"):format(#images))
  local job = dt.gui.create_job("white balance by c5", true)
  local done, problem, unsure = 0, nil, 0
  for number, each in ipairs(order) do
    local more, wrong, doubts = balance_folder(each[2], each[1])
    done, problem, unsure = done + more, problem or wrong, unsure + doubts
    job.percent = number / #order
  end
  job.valid = false
  local summary = ("c5: %d of %d balanced"):format(done, #images)
  if unsure > 0 then
    summary = ("%s, %d uncertain"):format(summary, unsure)
  end
  return tell(done < #images and problem and summary .. "; " .. problem or summary)
end

dt.gui.libs.image.register_action("c5_balance", "white balance by c5", function(_, images)
  c5.balance(images)
end, "find the light of the selected images, and add its balance to their history")

return c5
